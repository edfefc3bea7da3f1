"""The tools of a folder for smolagents: pip install tamis smolagents."""

from smolagents import Tool

from tamis.client import Client


class TamisTool(Tool):
    """One tool; smolagents takes the types of the parameters at the first level."""

    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, tamis: Client, tool_id: str) -> None:
        definition = tamis.tool_describe(tool_id=tool_id, as_="openai").definition["function"]
        required = definition["parameters"].get("required", [])
        self.name, self.description, self.inputs = definition["name"], definition["description"], {}
        for name, schema in definition["parameters"]["properties"].items():
            kind, said = schema.get("type", "any"), schema.get("description", name)
            self.inputs[name] = {"type": kind, "description": said, "nullable": name not in required}
        self._tamis, self._tool_id = tamis, tool_id
        super().__init__()

    def forward(self, **args: object) -> str:
        return self._tamis.tool_execute(tool_id=self._tool_id, args=args).observation


def smolagents_tools(tamis: Client) -> list[TamisTool]:
    """Each callable tool."""
    return [TamisTool(tamis, tool.tool_id) for tool in tamis.tool_list().tools if tool.callable and tool.available]
