import json
import os

from websockets.sync.client import connect

url = "__BASE_URL__/v1/responses".replace("http", "ws", 1)
headers = {"Authorization": "Bearer " + os.environ["MIZU_API_KEY"]}

with connect(url, additional_headers=headers) as socket:
    socket.send(json.dumps({"type": "response.create", "model": "__MODEL__", "input": "Why is the sea blue?"}))
    for text in socket:
        event = json.loads(text)
        if event["type"] == "response.output_text.delta":
            print(event["delta"], end="", flush=True)
        if event["type"] in ("response.completed", "response.incomplete", "response.failed", "error"):
            break
