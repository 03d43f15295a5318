package fast

// passes is a heap of ranks by the end of their pass, then by number.
type passes []*rank

func (h passes) before(i, j int) bool {
	return h[i].end < h[j].end || h[i].end == h[j].end && h[i].index < h[j].index
}

func (h *passes) push(r *rank) {
	*h = append(*h, r)
	l := *h
	for i := len(l) - 1; i > 0; {
		up := (i - 1) / 2
		if !l.before(i, up) {
			break
		}
		l[i], l[up] = l[up], l[i]
		i = up
	}
}

func (h *passes) pop() *rank {
	l := *h
	first, last := l[0], len(l)-1
	l[0] = l[last]
	l = l[:last]
	*h = l
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if l.before(c, least) {
				least = c
			}
		}
		if least == i {
			return first
		}
		l[i], l[least] = l[least], l[i]
		i = least
	}
}

// idle is ranks that may begin a pass, those with high numbers first. There are few at a time.
type idle []*rank

func (h *idle) push(r *rank) {
	l := append(*h, r)
	for i := len(l) - 1; i > 0 && l[i-1].index < l[i].index; i-- {
		l[i-1], l[i] = l[i], l[i-1]
	}
	*h = l
}

// pop returns the rank with the lowest number.
func (h *idle) pop() *rank {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}
