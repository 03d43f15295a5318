package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"mockbench/cmd/mockbench/flags"
)

var update = flag.Bool("update", false, "write docs/cli.md")

func TestDocumentation(t *testing.T) {
	const path = "../../docs/cli.md"
	var b bytes.Buffer
	flags.Markdown(&b, commands())
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Error("docs/cli.md is not current, run: go generate ./cmd/mockbench/flags")
	}
}
