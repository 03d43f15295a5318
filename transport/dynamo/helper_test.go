package dynamo

import (
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
