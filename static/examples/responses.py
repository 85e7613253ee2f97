import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

stream = client.responses.create(
    model="__MODEL__",
    input="Why is the sea blue?",
    stream=True,
)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
    elif event.type == "response.failed":
        raise SystemExit(event.response.error.message)
