import base64
import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

result = client.images.generate(
    model="__MODEL__",
    prompt="A harbour at dawn, woodcut",
    size="1024x1024",
)
with open("harbour.png", "wb") as file:
    file.write(base64.b64decode(result.data[0].b64_json))
