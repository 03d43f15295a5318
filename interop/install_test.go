package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// dynamoVersion is the release that all tests run beside.
const dynamoVersion = "1.6.1"

// requirements are what the real frontend and mocker need; the package itself is installed without its dependencies.
var requirements = []string{"ai-dynamo-runtime==" + dynamoVersion, "aiohttp<4", "certifi", "kubernetes<33", "msgspec",
	"prometheus-client<1", "pyzmq>=26", "redis<9", "tqdm", "transformers>=4.56", "zstandard<1"}

var (
	python string // interpreter with Dynamo
	binary string // our program
)

func TestMain(m *testing.M) {
	code, err := setUp(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		code = 1
	}
	os.Exit(code)
}

func setUp(run func() int) (int, error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return 0, err
	}
	venv := os.Getenv("MOCKBENCH_DYNAMO")
	if venv == "" {
		venv = filepath.Join(root, ".dynamo")
		if err := install(venv); err != nil {
			return 0, fmt.Errorf("installing Dynamo %s into %s: %w", dynamoVersion, venv, err)
		}
	}
	python = filepath.Join(venv, "bin", "python")
	dir, err := os.MkdirTemp("", "mockbench-interop-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "mockbench")
	build := exec.Command("go", "build", "-o", binary, "./cmd/mockbench")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return run(), nil
}

// install makes the virtual environment, unless a complete one is there.
func install(venv string) error {
	stamp := filepath.Join(venv, "installed-"+dynamoVersion)
	if _, err := os.Stat(stamp); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	pip := filepath.Join(venv, "bin", "pip")
	for _, command := range [][]string{
		{"python3", "-m", "venv", "--clear", venv},
		append([]string{pip, "install", "--quiet"}, requirements...),
		{pip, "install", "--quiet", "--no-deps", "ai-dynamo==" + dynamoVersion},
	} {
		fmt.Fprintln(os.Stderr, "interop: running", command)
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", command, err, out)
		}
	}
	return os.WriteFile(stamp, nil, 0o600)
}
