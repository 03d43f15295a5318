// Command mockbench stands in for LLM engine workers of a Dynamo deployment, with a screen that shows what their
// schedulers and caches do.
package main

import (
	"os"

	"mockbench/cmd/mockbench/app"
)

func main() {
	os.Exit(app.Main(os.Args[1:]))
}
