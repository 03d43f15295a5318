// Package interop tests the program beside the real Dynamo 1.6.1: its frontend lists our workers, streams from them,
// routes by their KV events and drops them, and its own mocker worker is the measure for ours.
//
// The tests need Python 3 with venv. Dynamo is installed once into the folder .dynamo of the repository, or taken from
// the virtual environment that MOCKBENCH_DYNAMO names.
//
// The tests of discovery through etcd need an etcd server in PATH, or install Debian's package etcd-server as root.
package interop
