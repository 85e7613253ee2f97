import json
import os
import time
import urllib.request
import uuid


def call(path, body=None, headers={}):
    request = urllib.request.Request(
        "__BASE_URL__" + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["MIZU_API_KEY"], "Content-Type": "application/json", **headers},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


# Keep this key with the order. Sent again, it finds the same task, and nothing is charged twice.
task = call(
    "/v1/videos",
    {"model": "__MODEL__", "prompt": "Waves against a pier, slow motion", "duration": 6},
    {"Idempotency-Key": str(uuid.uuid4())},
)
while task["status"] in ("queued", "submitting", "running"):
    time.sleep(5)
    task = call("/v1/videos/" + task["id"])
print(task["status"], task["output"] or task["error"])
