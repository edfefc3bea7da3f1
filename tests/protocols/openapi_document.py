"""An OpenAPI document with a bit of everything that the import knows."""

from __future__ import annotations

from typing import Any


def pets(url: str = "https://api.example.com/v1", version: str = "3.0.3") -> dict[str, Any]:
    """A document whose one server is ``url``."""
    pet = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string", "example": "Rex"},
            "tag": {"type": "string", "nullable": True},
            "pin": {"type": "string", "writeOnly": True},
            "age": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "kids": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
        },
    }
    answer = {
        "description": "A pet.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
    }
    return {
        "openapi": version,
        "info": {"title": 'The "Pets"', "version": "1.2"},
        "servers": [{"url": url}],
        "components": {
            "schemas": {"Pet": pet},
            "responses": {"One": answer},
            "parameters": {"Id": {"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}}},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
        "paths": {
            "/pets/{petId}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {
                    "operationId": "getPet",
                    "summary": "Gets one pet by its number",
                    "tags": ["pets"],
                    "parameters": [
                        {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {
                            "name": "where",
                            "in": "query",
                            "style": "deepObject",
                            "explode": True,
                            "schema": {"type": "object"},
                        },
                        {"name": "X-Trace", "in": "header", "description": "A trace.", "schema": {"type": "string"}},
                    ],
                    "responses": {"200": {"$ref": "#/components/responses/One"}},
                },
                "delete": {"security": [{"key": []}], "responses": {"204": {"description": "Gone."}}},
            },
            "/pets": {
                "post": {
                    "operationId": "createPet",
                    "description": "Adds a pet to the shop, with its kids.",
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    },
                    "responses": {"201": {"$ref": "#/components/responses/One"}},
                }
            },
        },
    }
