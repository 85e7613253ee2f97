"""An agent of LangGraph with LangChain's model of OpenAI, over chat or responses."""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from task import API, IS_FORM, KEY, MODEL, PROMPT, URL, Form, shell, show

llm = ChatOpenAI(
    api_key=KEY, base_url=f"{URL}/v1", model=MODEL, max_retries=0, use_responses_api=API == "responses", streaming=True
)
bash = tool("bash")(shell)

if IS_FORM:
    show(llm.with_structured_output(Form, method="json_schema").invoke(PROMPT))
else:
    state = create_react_agent(llm, [bash]).invoke({"messages": [("user", PROMPT)]})
    print(state["messages"][-1].text)
