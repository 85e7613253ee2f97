import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

for model in client.models.list():
    print(model.id)
