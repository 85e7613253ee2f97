import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

stream = client.chat.completions.create(
    model="__MODEL__",
    messages=[{"role": "user", "content": "Why is the sea blue?"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
