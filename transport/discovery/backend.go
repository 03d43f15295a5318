package discovery

import "context"

// Backend is where workers become visible. Each joins it for a place of its own.
type Backend interface {
	// Join makes room for one more worker.
	Join(ctx context.Context) (Member, error)

	// List returns the values of a bucket by key path, of all workers.
	List(ctx context.Context, bucket string) (map[string][]byte, error)

	// Close takes the records of all members back and ends their places.
	Close(ctx context.Context) error

	// Restored returns how often something of this process that discovery had lost was put back.
	Restored() uint64

	// String names the backend for people.
	String() string
}

// Member is the place of one worker in a backend.
type Member struct {
	Store // takes the worker's records

	ID uint64 // instance id

	// Lost receives why the backend dropped the worker for good: its records are gone and will not come back. Nil if
	// that cannot happen.
	Lost <-chan error
}

// Join implements Backend.
func (m *Memory) Join(context.Context) (Member, error) { return Member{Store: m, ID: m.NewID()}, nil }

// Restored implements Backend: nothing gets lost.
func (m *Memory) Restored() uint64 { return 0 }

// Join implements Backend.
func (f *File) Join(context.Context) (Member, error) { return Member{Store: f, ID: f.NewID()}, nil }
