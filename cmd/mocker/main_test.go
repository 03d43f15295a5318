package mocker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain keeps the tests to this machine and to folders of their own, and looks for goroutines that are left.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	os.Setenv("DYN_TCP_RPC_HOST", "127.0.0.1")
	os.Setenv("DYN_HTTP_RPC_HOST", "192.0.2.10")
	os.Setenv("XDG_CACHE_HOME", dir)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(dir)
		os.Exit(status)
	}))
}
