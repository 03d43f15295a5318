package requestplane

import "time"

// job is one accepted request.
type job struct {
	server   *Server
	endpoint *Endpoint
	home     *CallHome
	request  Request
	fault    error // why the request cannot be handed to a handler; the frontend is told
}

// take decides about a frame and returns the acknowledgement, and what to do once it is written.
func (s *Server) take(f Frame) (Ack, func()) {
	nothing := func() {}
	received := time.Now()
	s.mu.Lock()
	e := s.endpoints[f.Path]
	if e != nil {
		e.enter()
	}
	s.mu.Unlock()
	if e == nil {
		return ackUnknown(f.Path), nothing
	}
	j := &job{server: s, endpoint: e}
	j.request.Received = received
	if err := j.decode(f.Payload); j.home == nil {
		s.log.Warn("request refused", "endpoint", e.path, "error", err)
		e.metrics.requests.Inc()
		e.metrics.fail("invalid_message")
		e.leave()
		return ackNoReturn, nothing
	}
	acknowledged := make(chan struct{})
	later := func() {
		<-acknowledged
		s.metrics.permitWait.Observe(time.Since(received).Seconds())
		j.run()
	}
	switch s.limiter.enter(func() { s.goes("request", later) }) {
	case runNow:
		e.metrics.accept(f, received)
		return ackAccepted, func() { s.goes("request", j.run) }
	case runLater:
		e.metrics.accept(f, received)
		return ackAccepted, func() { close(acknowledged) }
	}
	s.metrics.rejected.Inc()
	e.leave()
	return ackOverloaded, nothing
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
	if err == nil {
		j.request.Codec, err = control.Codec()
	}
	return err
}

// run answers the request. The slot is free again as soon as the last frame is written; closing the connection in
// order takes longer and goes on by itself.
func (j *job) run() {
	defer j.server.limiter.leave()
	defer j.endpoint.leave()
	m := j.endpoint.metrics
	m.inflight.Inc()
	start := time.Now()
	defer func() {
		m.inflight.Dec()
		m.duration.Observe(time.Since(start).Seconds())
	}()
	stream, err := callHome(j.server.ctx, *j.home)
	if err != nil {
		j.server.log.Warn("cannot reach the frontend", "request", j.request.ID, "error", err)
		m.fail("response_stream")
		return
	}
	if !j.server.keep(stream.conn) {
		return
	}
	stream.codec = j.request.Codec
	stream.accepted = func() { j.server.metrics.firstResponse.Observe(time.Since(start).Seconds()) }
	j.server.goes("answer connection", func() {
		defer j.server.drop(stream.conn)
		stream.listen()
	})
	if j.fault == nil {
		j.endpoint.handler.Serve(stream.ctx, &j.request, stream)
	} else {
		j.server.log.Warn("request refused", "request", j.request.ID, "error", j.fault)
		m.fail("deserialization")
		_ = stream.Refuse(&Failure{Reason: InvalidArgument, Diagnostic: j.fault.Error(), Public: j.fault.Error()})
	}
	stream.conclude()
	m.responseBytes.Add(float64(stream.bytes))
	if stream.gone.Load() {
		m.cancelled.Inc()
	}
}
