// Command mockbench stands in for LLM engine workers of a Dynamo deployment, with a screen that shows what their
// schedulers and caches do.
package main

import (
	"os"

	"mockbench/cmd/mockbench/app"
	"mockbench/cmd/mockbench/flags"
)

func main() {
	args := os.Args[1:]
	command, err := flags.FindCommand(commands(), args)
	switch {
	case err != nil:
		os.Exit(flags.Fail(os.Stderr, "mockbench", err))
	case command != nil:
		os.Exit(command.Run(args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(app.Main(args, commands()))
}
