"""Hermes: ``<tool_call>`` blocks of JSON, as Hermes and Qwen models write them."""
