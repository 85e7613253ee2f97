import json
import os
import urllib.request

request = urllib.request.Request(
    "__BASE_URL__/user/balance",
    headers={"Authorization": "Bearer " + os.environ["MIZU_API_KEY"]},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["balance_infos"][0]["total_balance"], "USD")
