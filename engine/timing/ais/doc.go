// Package ais predicts how long the prefill and decode parts of a forward pass take on a GPU, from measured latencies of
// single kernels. A [Model] says of which operators a pass consists and how large they are; [Tables] hold the
// measurements of one system and backend and interpolate between them; a [Predictor] adds up the operators of a pass.
// The package reads no files: whoever has the data fills a [Builder].
//
// Latencies are milliseconds. Sizes are elements or tokens, bandwidths bytes per second, as in the data.
package ais
