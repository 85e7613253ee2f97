import os

from anthropic import Anthropic

# No /v1 here: this SDK adds it.
client = Anthropic(base_url="__BASE_URL__", api_key=os.environ["MIZU_API_KEY"])

with client.messages.stream(
    model="__MODEL__",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Why is the sea blue?"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
