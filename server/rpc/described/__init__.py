"""The contract described for other programs: OpenRPC, JSON Schema, TypeScript, a reference page, all from the Structs."""
