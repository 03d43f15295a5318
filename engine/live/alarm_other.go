//go:build !linux

package live

func newAlarm() alarm { return newRuntimeAlarm() }
