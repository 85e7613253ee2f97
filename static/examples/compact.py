import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

compacted = client.responses.compact(
    model="__MODEL__",
    input=[{"role": "user", "content": "Why is the sea blue?"}],
)
print(compacted.to_json())
