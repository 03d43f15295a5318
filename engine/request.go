package engine

// ID is the 128-bit identity of a request, in the byte order of a UUID's text. Synthetic output tokens derive from it.
type ID [16]byte

// Request is one request as its submitter made it. A scheduler reads it and never writes to it; the submitter leaves
// it alone until the request is finished or cancelled.
type Request struct {
	ID        ID
	Key       int    // the submitter's own number for the request, repeated in records; schedulers never look at it
	Label     string // name shown to people
	Prompt    []uint32
	MaxOutput int      // output tokens asked for
	Output    []uint32 // exact output, nil if not planned; its length, 0 included, then replaces MaxOutput
	Arrival   Time     // when the request arrived; queue time and TTFT count from here
}

// OutputLimit returns the number of output tokens asked for: planned ones, else MaxOutput.
func (r *Request) OutputLimit() int {
	if r.Output != nil {
		return len(r.Output)
	}
	return r.MaxOutput
}
