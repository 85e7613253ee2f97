"""The client of Anthropic for Python, in a loop of tool calls, streamed."""

from anthropic import Anthropic
from task import IS_FORM, KEY, MODEL, PROMPT, SCHEMA, URL, Form, shell, show

client = Anthropic(api_key=KEY, base_url=URL, max_retries=0)
TOOL = {"name": "bash", "description": "Runs a shell command.", "input_schema": SCHEMA}


def loop() -> None:
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        with client.messages.stream(model=MODEL, max_tokens=2048, messages=messages, tools=[TOOL]) as stream:
            answer = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            print("".join(block.text for block in answer.content if block.type == "text"))
            return
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": shell(call.input["command"])} for call in calls
        ]
        messages.append({"role": "user", "content": results})


if IS_FORM:
    asked = [{"role": "user", "content": PROMPT}]
    show(client.messages.parse(model=MODEL, max_tokens=2048, messages=asked, output_format=Form).parsed_output)
else:
    loop()
