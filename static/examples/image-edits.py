import base64
import os

from openai import OpenAI

client = OpenAI(base_url="__BASE_URL__/v1", api_key=os.environ["MIZU_API_KEY"])

with open("harbour.png", "rb") as image:
    result = client.images.edit(model="__MODEL__", prompt="Let the sun rise", image=image)
with open("sunrise.png", "wb") as file:
    file.write(base64.b64decode(result.data[0].b64_json))
