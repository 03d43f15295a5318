package ui

import "mockbench/ui/keys"

// tab is one panel.
type tab int

const (
	tabOverview tab = iota
	tabBlocks
	tabHost
	tabBatch
	tabRequests
	tabRouting
	tabLatency
	tabEvents
	tabKnobs
	tabs
)

// tabInfo is what the line of tabs and the key table say of a panel.
var tabInfo = [tabs]struct {
	name, short string
	where       keys.Where
}{
	tabOverview: {"Overview", "Over", keys.Overview},
	tabBlocks:   {"KV blocks", "KV", keys.Blocks},
	tabHost:     {"Host tier", "Host", keys.Host},
	tabBatch:    {"Batch", "Batch", keys.Batch},
	tabRequests: {"Requests", "Reqs", keys.Requests},
	tabRouting:  {"Routing", "Route", keys.Routing},
	tabLatency:  {"Latency", "Lat", keys.Latency},
	tabEvents:   {"Events", "Event", keys.Events},
	tabKnobs:    {"Knobs", "Knobs", keys.Knobs},
}

// available lists the panels there is something to show for, in the order of their digits.
func available(o *Options) []tab {
	var list []tab
	for t := range tabs {
		if t == tabRouting && o.Routing == nil || t == tabLatency && o.Window == nil {
			continue
		}
		list = append(list, t)
	}
	return list
}
