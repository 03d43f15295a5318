package limits

// Abortable reports whether a limit can be known to fail before a run ends: its figure only rises (a maximum, a number of
// samples, a count) and has an upper bound, or only falls (a minimum) and has a lower one.
func (l Limit) Abortable() bool {
	switch l.Operator {
	case "<", "<=":
		return l.Rising
	case ">", ">=":
		return l.Statistic == "min"
	case "==":
		return l.Rising || l.Statistic == "min"
	}
	return false
}

// Lost reports whether a limit will not hold any more, whatever comes after the figures so far.
func (l Limit) Lost(s Source) bool {
	if !l.Abortable() {
		return false
	}
	x, _, reason := l.value(s)
	switch {
	case reason != "":
		return false
	case l.Operator != "==":
		return !l.holds(x)
	case l.Rising:
		return x > l.Bound
	}
	return x < l.Bound
}

// FirstLost returns the first of some limits that will not hold any more.
func FirstLost(list []Limit, s Source) (lost Limit, ok bool) {
	for _, l := range list {
		if l.Lost(s) {
			return l, true
		}
	}
	return Limit{}, false
}
