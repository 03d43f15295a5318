// Package dynamo makes a live worker a Dynamo worker: it answers the generate requests of frontends, publishes the
// discovery records by which frontends find the worker, and takes it out again without losing a request.
package dynamo
