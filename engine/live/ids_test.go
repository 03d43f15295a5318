package live

import (
	"testing"

	"github.com/google/uuid"

	"mockbench/engine"
)

func TestRequestIDs(t *testing.T) {
	seen := map[engine.ID]bool{}
	for seed := range uint64(3) {
		for index := range 4 {
			for n := range uint64(1000) {
				id := requestID(seed, index, n)
				if seen[id] {
					t.Fatalf("seed %d, worker %d, request %d: id %x was given before", seed, index, n, id)
				}
				seen[id] = true
				if u := uuid.UUID(id); u.Version() != 4 || u.Variant() != uuid.RFC4122 {
					t.Fatalf("%v is not a random UUID", u)
				}
			}
		}
	}
	if a, b := requestID(7, 2, 9), requestID(7, 2, 9); a != b {
		t.Errorf("not repeatable: %x, %x", a, b)
	}
	// Recorded runs depend on these.
	equal(t, "first id", uuid.UUID(requestID(0, 0, 0)).String(), "b57a554f-8c37-4f91-86b7-3e79f0c37c00")
}
