"""The client of OpenAI for Python, in a loop of tool calls: chat or responses, streamed as its helpers stream."""

import json

from openai import OpenAI
from task import API, IS_FORM, KEY, MODEL, PROMPT, SCHEMA, URL, Form, shell, show

client = OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
FUNCTION = {"name": "bash", "description": "Runs a shell command.", "parameters": SCHEMA}


def chat() -> None:
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        tools = [{"type": "function", "function": FUNCTION}]
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            said = stream.get_final_completion().choices[0].message
        # The helper joins the roles of all chunks, and routers repeat theirs.
        messages.append({**said.model_dump(exclude_none=True, exclude={"parsed"}), "role": "assistant"})
        if not said.tool_calls:
            print(said.content)
            return
        for call in said.tool_calls:
            call_text = shell(json.loads(call.function.arguments)["command"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": call_text})


def responses() -> None:
    items = [{"role": "user", "content": PROMPT}]
    while True:
        tools = [{"type": "function", **FUNCTION, "strict": False}]
        with client.responses.stream(
            model=MODEL, input=items, tools=tools, store=False, include=["reasoning.encrypted_content"]
        ) as stream:
            answer = stream.get_final_response()
        calls = [item for item in answer.output if item.type == "function_call"]
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        if not calls:
            print(answer.output_text)
            return
        for call in calls:
            call_text = shell(json.loads(call.arguments)["command"])
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": call_text})


def form() -> Form | None:
    if API == "responses":
        return client.responses.parse(model=MODEL, input=PROMPT, text_format=Form).output_parsed
    messages = [{"role": "user", "content": PROMPT}]
    return client.chat.completions.parse(model=MODEL, messages=messages, response_format=Form).choices[0].message.parsed


if IS_FORM:
    show(form())
else:
    {"chat": chat, "responses": responses}[API]()
