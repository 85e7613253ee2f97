import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

result = client.embeddings.create(model="__MODEL__", input=["high water", "low water"])
for item in result.data:
    print(item.index, len(item.embedding))
