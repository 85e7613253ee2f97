import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

completion = client.completions.create(model="__MODEL__", prompt="The tide comes in", max_tokens=64)
print(completion.choices[0].text)
