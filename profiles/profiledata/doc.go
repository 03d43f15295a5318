// Package profiledata reads measured pass times from files, and writes them: NPZ tables, and the results directories of
// Dynamo's profiler, which it turns into tables as the reference does, without any file in between. Files come from
// anywhere, so nothing they claim is believed before it is checked.
package profiledata
