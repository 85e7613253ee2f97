"""What every client is asked to do: a shell as its one tool, or a form. Arguments: the protocol; the prompt. Prints what the agent says."""

import os
import subprocess
import sys

from pydantic import BaseModel, Field

API, PROMPT = sys.argv[1:3]
URL, KEY, MODEL = (os.environ[name] for name in ("GW_URL", "GW_API_KEY", "GW_MODEL"))
IS_FORM = PROMPT.startswith("Fill in the form")

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


class Form(BaseModel):
    """Has bounds, which not every vendor takes in a schema."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0)


def shell(command: str) -> str:
    """Runs a shell command."""
    output = subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout
    print(f"$ {command}\n{output}", flush=True)
    return output


def show(form: Form) -> None:
    print(f"{form.name} is {form.age}")
