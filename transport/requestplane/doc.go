// Package requestplane is the TCP request plane of a Dynamo worker: one server per process that takes requests from
// frontends, and for each request a connection back to the frontend that carries the answer.
//
// A frontend keeps a connection to a [Server] and writes request frames on it. The path in a frame names one endpoint of
// one worker. The server acknowledges frames in order, then dials the address inside the request and hands the
// [Request] and the answer [Stream] to the endpoint's [Handler]. Messages inside frames, and everything on the answer
// connection, are two-part messages: a header, a body, either of which may be empty.
package requestplane
