// Command mockbench stands in for LLM engine workers of a Dynamo deployment, with a screen that shows what their
// schedulers and caches do.
package main

import (
	"os"

	"mockbench/cmd/mockbench/app"
	"mockbench/cmd/mockbench/replaycmd"
)

func main() {
	if args := os.Args[1:]; len(args) > 0 && args[0] == "replay" {
		os.Exit(replaycmd.Main(args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(app.Main(os.Args[1:]))
}
