package completion

import "embed"

//go:embed scripts
var scripts embed.FS

// Shells are the shells there is a script for.
var Shells = []string{"bash", "zsh", "fish", "powershell"}

const usage = `usage: mockbench completion bash|zsh|fish|powershell

Prints a script that completes commands, flags and their values. To use it in this session:

  bash        source <(mockbench completion bash)
  zsh         source <(mockbench completion zsh)
  fish        mockbench completion fish | source
  powershell  mockbench completion powershell | Out-String | Invoke-Expression

To have it in every session, put that line into ~/.bashrc, ~/.zshrc (after compinit), ~/.config/fish/config.fish or
the file named by $PROFILE.
`
