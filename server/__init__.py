"""The daemon: runtime, analysis and the thin faces (lsp, rpc, cli) over them; see ARCHITECTURE.md."""
