package trace

// Request is a request that nobody follows.
type Request struct {
	Turn
	Number  int     // in the file, from 0
	Arrival float64 // milliseconds
}
