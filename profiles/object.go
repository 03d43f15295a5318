package profiles

import (
	"encoding/json"
	"slices"
	"strings"
)

// Object is a JSON object that remembers the order of its keys. Values are nil, bool, json.Number, string, []any or
// *Object.
type Object struct {
	keys   []string
	values map[string]any
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{values: map[string]any{}} }

// Keys returns the keys in order.
func (o *Object) Keys() []string { return o.keys }

// Raw returns the value of a key that may hold dots.
func (o *Object) Raw(key string) (any, bool) {
	v, ok := o.values[key]
	return v, ok
}

// Get returns the value at a dotted path.
func (o *Object) Get(path string) (any, bool) {
	first, rest, deeper := strings.Cut(path, ".")
	v, ok := o.values[first]
	if !ok || !deeper {
		return v, ok
	}
	inner, isObject := v.(*Object)
	if !isObject {
		return nil, false
	}
	return inner.Get(rest)
}

// Set stores a value at a dotted path and makes the objects on the way. A value that is stored again moves to the end.
func (o *Object) Set(path string, v any) {
	first, rest, deeper := strings.Cut(path, ".")
	if deeper {
		inner, ok := o.values[first].(*Object)
		if !ok {
			inner = NewObject()
			o.put(first, inner)
		}
		inner.Set(rest, v)
		return
	}
	o.put(first, v)
}

func (o *Object) put(key string, v any) {
	if _, ok := o.values[key]; ok {
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
	o.keys = append(o.keys, key)
	o.values[key] = v
}

// Delete removes a key.
func (o *Object) Delete(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// Clone returns a deep copy.
func (o *Object) Clone() *Object {
	c := NewObject()
	for _, k := range o.keys {
		v := o.values[k]
		if inner, ok := v.(*Object); ok {
			v = inner.Clone()
		}
		c.put(k, v)
	}
	return c
}

// MarshalJSON writes the keys in order.
func (o *Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, k := range o.keys {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o.values[k])
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// Number is a number as text, the form in which an Object holds it.
type Number = json.Number
