package requestplane

import (
	"errors"
	"fmt"
	"time"
)

// job is one accepted request.
type job struct {
	dispatcher *Dispatcher
	endpoint   *Endpoint
	home       Home
	request    Request
	fault      error // why the request cannot be handed to a handler; the frontend is told
}

// decode takes the payload apart. What is wrong with it becomes the job's fault if there is somebody to tell.
func (j *job) decode(payload []byte) error {
	header, body, err := SplitMessage(payload)
	if err != nil {
		return err
	}
	control, err := ParseControl(header)
	j.home, j.fault = control.Home, err
	j.request.ID, j.request.Body = control.ID, body
	if err == nil && j.home.plane() != j.dispatcher.response {
		j.fault = &mismatchError{j.home.plane(), j.dispatcher.response}
	}
	if err == nil {
		j.request.Codec, err = control.Codec()
	}
	return err
}

// run answers the request. The slot is free again as soon as the last frame is written; closing the connection in
// order takes longer and goes on by itself.
func (j *job) run() {
	defer j.dispatcher.limiter.leave()
	defer j.endpoint.leave()
	m := j.endpoint.metrics
	m.inflight.Inc()
	start := time.Now()
	defer func() {
		m.inflight.Dec()
		took := time.Since(start)
		m.duration.Observe(took.Seconds())
		j.endpoint.busy(took)
	}()
	stream := newStream(j.dispatcher.ctx, j.request.Codec)
	stream.accepted = func() { j.dispatcher.metrics.firstResponse.Observe(time.Since(start).Seconds()) }
	var err error
	if stream.line, err = j.home.open(j.dispatcher, stream); err != nil {
		j.dispatcher.log.Warn("cannot reach the frontend", "request", j.request.ID, "error", err)
		j.endpoint.fail("response_stream", err)
		return
	}
	if j.fault == nil {
		j.endpoint.handler.Serve(stream.ctx, &j.request, stream)
	} else {
		j.dispatcher.log.Warn("request refused", "request", j.request.ID, "error", j.fault)
		j.endpoint.fail("deserialization", j.fault)
		_ = j.refuse(stream)
	}
	stream.conclude()
	m.responseBytes.Add(float64(stream.bytes))
	if stream.gone.Load() {
		m.cancelled.Inc()
	}
}

// refuse tells the frontend about the fault. One that is not the client's makes frontends avoid this worker.
func (j *job) refuse(s *Stream) error {
	if mismatch := (*mismatchError)(nil); errors.As(j.fault, &mismatch) {
		return s.refuse(mismatch.Error(), nil)
	}
	return s.Refuse(&Failure{Reason: InvalidArgument, Diagnostic: j.fault.Error(), Public: j.fault.Error()})
}

// mismatchError is a request whose answer is expected on another response plane than the worker's.
type mismatchError struct{ requested, configured ResponsePlane }

func (e *mismatchError) Error() string {
	return fmt.Sprintf("response plane mismatch: frontend requested %s, worker configured %s", e.requested, e.configured)
}
