// Package aisdata finds and reads the measured kernel latencies that NVIDIA ships inside Python wheels, and fetches such
// a wheel from the package index. It turns an AIS descriptor into a predictor of [mockbench/engine/timing/ais].
package aisdata
