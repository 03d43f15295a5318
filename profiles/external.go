package profiles

import (
	"errors"
	"fmt"
	"strconv"

	"mockbench/engine"
	"mockbench/engine/timing"
	"mockbench/profiles/profiledata"
)

// externalTiming reads a timing model that lies in files, and the files with it.
func externalTiming(l *Launch, path string, o *Object) error {
	provider, _ := o.Get("provider")
	switch provider {
	case "dynamo_profile":
		return profileTiming(l, path, o)
	case "ais", "aic":
		return aisTiming(l, path, o)
	}
	return bad(path+".provider", engine.KindUnknown, provider, "allowed: dynamo_profile, ais, aic")
}

// profileTiming reads measured pass times. A relative path starts at the working directory, as in the reference.
func profileTiming(l *Launch, path string, o *Object) error {
	v, _ := o.Get("config")
	config, ok := v.(*Object)
	if !ok {
		return bad(path+".config", engine.KindType, v, "must be an object with a path")
	}
	for _, key := range config.Keys() {
		if key != "path" {
			return &engine.SettingError{Setting: path + ".config." + key, Kind: engine.KindUnknown, Allowed: "no such setting, known is path"}
		}
	}
	path += ".config.path"
	given, ok := config.Raw("path")
	if !ok {
		return missing(path)
	}
	file, ok := given.(string)
	if !ok {
		return bad(path, engine.KindType, given, "must be text")
	}
	grid, err := profiledata.Load(file)
	if err != nil {
		kind := engine.KindRange
		var array *timing.ArrayError
		if errors.As(err, &array) {
			kind = array.Kind
		}
		return &engine.SettingError{Setting: path, Kind: kind, Given: strconv.Quote(file),
			Allowed: fmt.Sprintf("must be an NPZ file or a profiler's results directory with pass times: %v", err)}
	}
	l.Engine.Timing = engine.TimingConfig{Type: "external", External: grid}
	l.External = o.Clone()
	return nil
}
