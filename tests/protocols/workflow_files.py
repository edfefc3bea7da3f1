"""Workflow files of ComfyUI and n8n as those projects write them."""

from __future__ import annotations

from typing import Any


def comfyui_graph() -> dict[str, Any]:
    """A graph in API form: a sampler, two texts, a model, a size, a picture that is saved."""

    def text(of: str, title: str) -> dict[str, Any]:
        return {"class_type": "CLIPTextEncode", "inputs": {"text": of, "clip": ["4", 1]}, "_meta": {"title": title}}

    sampler = {"seed": 5, "steps": 20, "cfg": 8, "sampler_name": "euler", "scheduler": "normal", "denoise": 0.75}
    links = {"model": ["4", 0], "positive": ["6", 0], "negative": ["7", 0], "latent_image": ["5", 0]}
    return {
        "3": {"class_type": "KSampler", "inputs": {**sampler, **links}, "_meta": {"title": "KSampler"}},
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd.safetensors"}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512}},
        "6": text("a cat", "Positive"),
        "7": text("blurred", "Negative"),
        "9": {"class_type": "SaveImage", "inputs": {"filename_prefix": "tamis", "images": ["3", 0]}},
    }


def n8n_workflow() -> dict[str, Any]:
    """A webhook whose nodes read the request in the ways that expressions have for it."""
    webhook = {"httpMethod": "POST", "path": "answer-mail", "responseMode": "lastNode", "options": {}}
    read = {
        "subject": "={{ $json.body.subject }} of {{ $json.body.user.name }}",
        "to": "={{ $('Webhook').item.json.body['reply to'] }}",
        "options": {"language": '={{ $node["Webhook"].json["query"]["lang"] }}', "again": "={{$json.body.subject}}"},
        "plain": "$json without a field",
    }
    return {
        "name": "Answer mail",
        "nodes": [
            {"name": "Webhook", "type": "n8n-nodes-base.webhook", "typeVersion": 2, "position": [1, 2], "parameters": webhook},
            {"name": "Set", "type": "n8n-nodes-base.set", "typeVersion": 3, "position": [3, 2], "parameters": read},
        ],
        "connections": {"Webhook": {"main": [[{"node": "Set", "type": "main", "index": 0}]]}},
        "active": False,
    }  # fmt: skip


def n8n_form() -> dict[str, Any]:
    """A form with a field of each kind that matters."""

    def options(*names: str) -> dict[str, Any]:
        return {"values": [{"option": name} for name in names]}

    fields = [
        {"fieldLabel": "Your name", "requiredField": True},
        {"fieldLabel": "Age", "fieldType": "number"},
        {"fieldLabel": "Colour", "fieldType": "dropdown", "fieldOptions": options("red", "blue")},
        {"fieldLabel": "Days", "fieldType": "dropdown", "multiselect": True, "fieldOptions": options("Mo", "Tu")},
        {"fieldLabel": "Picture", "fieldType": "file"},
        {"fieldType": "html", "html": "<p>x</p>"},
    ]
    settings = {
        "formTitle": "Colour",
        "formDescription": "Asks a person's colour for the test.",
        "formFields": {"values": fields},
    }
    node = {"name": "Form", "type": "n8n-nodes-base.formTrigger", "parameters": settings, "webhookId": "f0-1"}
    return {"name": "Colours", "nodes": [node], "connections": {"Form": {"main": [[{"node": "X"}]]}}, "active": True}
