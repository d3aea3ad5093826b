package mcp

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// This file is JSON Schema: schemas inferred from Go types, schemas compiled
// to checkers that run over JSON text, and defaults.

// ---- Inference ----------------------------------------------------------

// SchemaFor returns the JSON Schema (2020-12) of the JSON that encoding/json
// writes for a T and reads into one.
//
//   - A struct is an object without further properties, in field order, by
//     the names and promotion rules of encoding/json. A field is required
//     unless it is a pointer, has omitempty, omitzero or a default, or comes
//     from an embedded pointer.
//   - A pointer is what it points to, a slice an array, an array an array of
//     exactly its length, a map an object. None of them advertises null,
//     though Go's nil is accepted where arguments are checked.
//   - []byte is base64 text, [time.Time] a date-time, [time.Duration] an
//     integer of nanoseconds, [json.Number] a number; a type that marshals
//     itself as text is a string.
//   - json.RawMessage, interfaces and types with their own JSON form are
//     open ({}). A type says more with a method JSONSchema() json.RawMessage,
//     called on its zero value; what it returns must not refer to its own root.
//   - A named type that is used more than once is in $defs.
//
// The struct tag jsonschema holds a description and then keywords:
//
//	Age int `json:"age" jsonschema:"in full years,minimum=0,maximum=150"`
//
// Text up to the first ",keyword=" is the description; a value ends at the
// next ",keyword=". Values of enum and examples are separated by |. Values
// that are not scalars are JSON. Every assertion keyword of 2020-12 works,
// as do title, default, examples, deprecated, readOnly, writeOnly,
// contentEncoding, contentMediaType and x-mcp-header; required=true or false
// overrides the rule above, and type= gives an open type one. On a slice or
// array, keywords that are not about arrays describe its elements.
//
// A type that has no JSON form, an unknown keyword and a value that does not
// fit the field are errors that name the field.
func SchemaFor[T any]() (json.RawMessage, error) {
	schema, err := schemaForType(reflect.TypeFor[T]())
	return bytes.Clone(schema), err
}

var inferredSchemas sync.Map // reflect.Type to func() (json.RawMessage, error)

// schemaForType is [SchemaFor] for a reflect.Type. The result is shared: it
// must not be changed.
func schemaForType(t reflect.Type) (json.RawMessage, error) {
	infer, ok := inferredSchemas.Load(t)
	if !ok {
		infer, _ = inferredSchemas.LoadOrStore(t, sync.OnceValues(func() (json.RawMessage, error) {
			return inferSchema(t, false)
		}))
	}
	return infer.(func() (json.RawMessage, error))()
}

// A shape is a schema under construction: its members in order, and the JSON
// type of its values, "" when open.
type shape struct {
	kind    string
	members []shapeMember
}

type shapeMember struct {
	key string
	raw []byte
	sub *shape // instead of raw
}

func (sh *shape) member(key string) *shapeMember {
	for i := range sh.members {
		if sh.members[i].key == key {
			return &sh.members[i]
		}
	}
	sh.members = append(sh.members, shapeMember{key: key})
	return &sh.members[len(sh.members)-1]
}

func (sh *shape) has(key string) bool {
	return slices.ContainsFunc(sh.members, func(m shapeMember) bool { return m.key == key })
}

func (sh *shape) set(key, raw string)         { sh.member(key).raw = []byte(raw) }
func (sh *shape) setString(key, value string) { sh.member(key).raw = appendString(nil, value) }
func (sh *shape) setSub(key string, s *shape) { sh.member(key).sub = s }

func (sh *shape) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range sh.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, m.key), ':')
		if m.sub != nil {
			dst = m.sub.append(dst)
		} else {
			dst = append(dst, m.raw...)
		}
	}
	return append(dst, '}')
}

func typed(kind string) *shape {
	sh := &shape{kind: kind}
	sh.setString("type", kind)
	return sh
}

// An inference makes the schema of one type. It runs twice: first only to
// count how often each named type occurs, then to write.
type inference struct {
	root  reflect.Type
	uses  map[reflect.Type]int
	names map[reflect.Type]string // in $defs; nil while counting
	defs  []reflect.Type          // those in names, in order
	nulls bool                    // mark what may be null in Go
}

// nullKeyword marks, in schemas that are only compiled and never sent, where
// Go's nil is accepted.
const nullKeyword = "go:nil"

func inferSchema(t reflect.Type, nulls bool) (json.RawMessage, error) {
	root, pointer, err := dereference(t)
	if err != nil {
		return nil, fmt.Errorf("mcp: no schema for %v: %w", t, err)
	}
	in := &inference{root: root, uses: map[reflect.Type]int{root: 1}, nulls: nulls}
	if _, err := in.inline(root, pointer); err != nil {
		return nil, fmt.Errorf("mcp: no schema for %v: %w", t, err)
	}
	in.names = map[reflect.Type]string{}
	sh, err := in.inline(root, pointer)
	if err != nil {
		return nil, err
	}
	if sh.kind == "object" && !sh.has("properties") {
		sh.set("properties", "{}") // several model vendors insist on it
	}
	defs := new(shape)
	for i := 0; i < len(in.defs); i++ {
		def, err := in.build(in.defs[i])
		if err != nil {
			return nil, err
		}
		defs.setSub(in.names[in.defs[i]], def)
	}
	if len(defs.members) > 0 {
		sh.setSub("$defs", defs)
	}
	return sh.append(nil), nil
}

func dereference(t reflect.Type) (elem reflect.Type, pointer bool, err error) {
	for n := 0; t.Kind() == reflect.Pointer; n++ {
		if n == 100 {
			return t, true, fmt.Errorf("%v has no JSON form", t)
		}
		t, pointer = t.Elem(), true
	}
	return t, pointer, nil
}

// shape returns the schema of a type where it is used: inline, or as $ref.
func (in *inference) shape(t reflect.Type) (*shape, error) {
	elem, pointer, err := dereference(t)
	if err != nil {
		return nil, err
	}
	var sh *shape
	if in.repeated(elem, pointer) {
		sh = &shape{kind: naturalKind(elem)}
		sh.setString("$ref", in.refTo(elem))
	} else if sh, err = in.inline(elem, pointer); err != nil {
		return nil, err
	}
	nilable := pointer || elem.Kind() == reflect.Slice || elem.Kind() == reflect.Map
	if in.nulls && nilable && len(sh.members) > 0 {
		sh.set(nullKeyword, "true")
	}
	return sh, nil
}

// inline returns the schema of a type as such.
func (in *inference) inline(t reflect.Type, pointer bool) (*shape, error) {
	if sh, err := ownShape(t, pointer); sh != nil || err != nil {
		return sh, err
	}
	return in.build(t)
}

// repeated reports whether t is written once, in $defs. While counting it is
// true from the second meeting on, which also ends recursion.
func (in *inference) repeated(t reflect.Type, pointer bool) bool {
	kind := naturalKind(t)
	if t.Name() == "" || kind != "object" && kind != "array" {
		return false
	}
	if own, err := ownShape(t, pointer); own != nil || err != nil {
		return false
	}
	if in.names == nil {
		in.uses[t]++
	}
	return in.uses[t] > 1
}

// refTo names a repeated type and queues it for $defs.
func (in *inference) refTo(t reflect.Type) string {
	if t == in.root {
		return "#"
	}
	if in.names == nil {
		return ""
	}
	if in.names[t] == "" {
		name := defName(t.Name())
		for n, base := 2, name; in.taken(name); n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		in.names[t] = name
		in.defs = append(in.defs, t)
	}
	return "#/$defs/" + in.names[t]
}

func (in *inference) taken(name string) bool {
	return slices.ContainsFunc(in.defs, func(t reflect.Type) bool { return in.names[t] == name })
}

// defName makes a type's name fit for a URI fragment. Only the names of
// generic types need it: Page[example.com/x.Item] is Page_x.Item.
func defName(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-/", r)
	})
	for i, part := range parts {
		parts[i] = part[strings.LastIndexByte(part, '/')+1:]
	}
	return cmp.Or(strings.Join(parts, "_"), "T")
}

// A schemaMethod is a type that knows its own schema.
type schemaMethod interface{ JSONSchema() json.RawMessage }

var (
	schemaMethodType    = reflect.TypeFor[schemaMethod]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// knownTypes are the standard library's types whose JSON their methods or
// fields do not show. They are named, not imported.
var knownTypes = map[string][3]string{ // type, format, description
	"time.Time":            {"string", "date-time"},
	"time.Duration":        {"integer", "", "nanoseconds"},
	"encoding/json.Number": {"number"},
	"math/big.Int":         {"integer"},
	"math/big.Float":       {"string"},
	"math/big.Rat":         {"string"},
	"log/slog.Level":       {"string"},
	"net/url.URL":          {"object", "", "a URL split in its parts, as Go's net/url has them"},
}

// ownShape returns the schema of a type whose JSON is not that of its kind,
// and nil if it is.
func ownShape(t reflect.Type, pointer bool) (*shape, error) {
	if known, ok := knownTypes[t.PkgPath()+"."+t.Name()]; ok {
		sh := typed(known[0])
		if known[1] != "" {
			sh.setString("format", known[1])
		}
		if known[2] != "" {
			sh.setString("description", known[2])
		}
		return sh, nil
	}
	ptr := reflect.PointerTo(t)
	marshals := ptr.Implements(marshalerType) || ptr.Implements(unmarshalerType)
	texts := ptr.Implements(textMarshalerType) || ptr.Implements(textUnmarshalerType)
	if ptr.Implements(schemaMethodType) && (marshals || texts || !promoted(t, schemaMethodType)) {
		return parseShape(reflect.New(t).Interface().(schemaMethod).JSONSchema())
	}
	switch {
	case t.Kind() == reflect.Interface, marshals:
		return new(shape), nil
	case t.Implements(textMarshalerType), pointer && ptr.Implements(textMarshalerType), texts && t.Kind() == reflect.String:
		return typed("string"), nil
	case texts: // encoding/json writes a value that has no address by its kind
		return new(shape), nil
	}
	return nil, nil
}

// promoted reports whether a struct can have the method from an embedded
// field, and so not for itself.
func promoted(t, method reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(method) || reflect.PointerTo(f.Type).Implements(method)) {
			return true
		}
	}
	return false
}

// parseShape reads the schema that a type offers.
func parseShape(raw json.RawMessage) (*shape, error) {
	sh := new(shape)
	s := scanner{data: raw}
	if s.peek() != '{' {
		if text := string(bytes.TrimSpace(raw)); text != "true" {
			return nil, fmt.Errorf("JSONSchema returned %.40q, which is not a schema object", text)
		}
		return sh, nil
	}
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		key := string(s.key())
		sh.set(key, string(s.skip()))
	}
	if s.end(); s.err != nil {
		return nil, fmt.Errorf("JSONSchema returned invalid JSON: %w", s.err)
	}
	if sh.has("type") {
		sh.kind, _ = stringValue(sh.member("type").raw)
	}
	return sh, nil
}

func naturalKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		if isBytes(t) {
			return "string"
		}
		return "array"
	case reflect.Array:
		return "array"
	}
	return ""
}

// isBytes reports whether encoding/json writes the slice type as base64.
func isBytes(t reflect.Type) bool {
	p := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !p.Implements(marshalerType) && !p.Implements(textMarshalerType)
}

// build returns the schema of a type by its kind.
func (in *inference) build(t reflect.Type) (*shape, error) {
	sh := typed(naturalKind(t))
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		bits := t.Bits()
		sh.set("minimum", strconv.FormatInt(-1<<(bits-1), 10))
		sh.set("maximum", strconv.FormatInt(1<<(bits-1)-1, 10))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		sh.set("minimum", "0")
		sh.set("maximum", strconv.FormatUint(1<<t.Bits()-1, 10))
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		sh.set("minimum", "0")
	case reflect.Struct:
		return sh, in.structShape(sh, t)
	case reflect.Map:
		return sh, in.mapShape(sh, t)
	case reflect.Slice, reflect.Array:
		if sh.kind == "string" {
			sh.setString("contentEncoding", "base64")
			return sh, nil
		}
		items, err := in.shape(t.Elem())
		if err != nil {
			return nil, err
		}
		sh.setSub("items", items)
		if t.Kind() == reflect.Array {
			sh.set("minItems", strconv.Itoa(t.Len()))
			sh.set("maxItems", strconv.Itoa(t.Len()))
		}
	}
	if sh.kind == "" {
		return nil, fmt.Errorf("%v has no JSON form", t)
	}
	return sh, nil
}

const (
	integerPattern  = `^-?(0|[1-9][0-9]*)$`
	unsignedPattern = `^(0|[1-9][0-9]*)$`
)

func textPattern(t reflect.Type) string {
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr {
		return unsignedPattern
	}
	return integerPattern
}

func (in *inference) mapShape(sh *shape, t reflect.Type) error {
	key := t.Key()
	switch {
	case key.Kind() == reflect.String, key.Implements(textMarshalerType):
	case naturalKind(key) == "integer":
		names := new(shape)
		names.setString("pattern", textPattern(key))
		sh.setSub("propertyNames", names)
	default:
		return fmt.Errorf("%v has no JSON form: its keys are not text", t)
	}
	elem, err := in.shape(t.Elem())
	if err == nil {
		sh.setSub("additionalProperties", elem)
	}
	return err
}

func (in *inference) structShape(sh *shape, t reflect.Type) error {
	properties := new(shape)
	required := []byte{'['}
	for _, f := range jsonFields(t) {
		prop, err := in.shape(f.typ)
		if err != nil {
			return inField(f.goName, err)
		}
		if f.quoted {
			prop = quotedShape(prop, f.typ)
		}
		optional := f.omitEmpty || f.omitZero || f.viaPointer || f.typ.Kind() == reflect.Pointer
		if err := applyTag(prop, f.tag.Get("jsonschema"), &optional); err != nil {
			return inField(f.goName, err)
		}
		properties.setSub(f.name, prop)
		if !optional {
			if len(required) > 1 {
				required = append(required, ',')
			}
			required = appendString(required, f.name)
		}
	}
	sh.setSub("properties", properties)
	if len(required) > 1 {
		sh.set("required", string(append(required, ']')))
	}
	sh.set("additionalProperties", "false")
	return nil
}

// quotedShape is the schema of a field with the option ",string".
func quotedShape(sh *shape, t reflect.Type) *shape {
	elem, _, _ := dereference(t)
	quoted := typed("string")
	switch {
	case sh.kind == "":
		return sh // it marshals itself
	case sh.kind == "integer":
		quoted.setString("pattern", textPattern(elem))
	case sh.kind == "boolean":
		quoted.set("enum", `["true","false"]`)
	}
	if sh.has(nullKeyword) {
		quoted.set(nullKeyword, "true")
	}
	return quoted
}

// A fieldError says in which field inference failed.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return "field " + e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

func inField(name string, err error) error {
	var inner *fieldError
	if errors.As(err, &inner) {
		return &fieldError{name + "." + inner.path, inner.err}
	}
	return &fieldError{name, err}
}

// A jsonField is one member of a struct's JSON.
type jsonField struct {
	name       string
	goName     string
	typ        reflect.Type
	index      []int // as reflect.Value.FieldByIndex takes it
	tag        reflect.StructTag
	tagged     bool // the name is from the tag
	viaPointer bool // of an embedded pointer: absent when that is nil
	omitEmpty  bool
	omitZero   bool
	quoted     bool // the option ",string"
}

// jsonFields lists the members that encoding/json gives a struct, in field
// order: embedded structs are flattened, and of several fields of one name
// the shallowest wins, then the tagged one, then none.
func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	visited := map[reflect.Type]bool{}
	for level := []jsonField{{typ: t}}; len(level) > 0; {
		times := map[reflect.Type]int{} // a struct embedded twice on one level hides its own fields
		for _, outer := range level {
			times[outer.typ]++
		}
		var next []jsonField
		for _, outer := range level {
			if visited[outer.typ] {
				continue
			}
			visited[outer.typ] = true
			for i := range outer.typ.NumField() {
				f, embedded, ok := jsonFieldOf(outer, i)
				for n := min(times[outer.typ], 2); ok && n > 0; n-- {
					if embedded {
						next = append(next, f)
					} else {
						fields = append(fields, f)
					}
				}
			}
		}
		level = next
	}
	return dominantFields(fields)
}

// jsonFieldOf reads field i of an outer struct; embedded means that the
// fields of its struct count instead of it.
func jsonFieldOf(outer jsonField, i int) (f jsonField, embedded, ok bool) {
	sf := outer.typ.Field(i)
	elem, pointer := sf.Type, sf.Type.Kind() == reflect.Pointer
	if pointer {
		elem = elem.Elem()
	}
	tag := sf.Tag.Get("json")
	if tag == "-" || !sf.IsExported() && !(sf.Anonymous && elem.Kind() == reflect.Struct) {
		return f, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validTagName(name) {
		name = ""
	}
	f = jsonField{name: cmp.Or(name, sf.Name), goName: sf.Name, typ: sf.Type, tag: sf.Tag, tagged: name != "",
		index: append(slices.Clip(outer.index), i), viaPointer: outer.viaPointer}
	if sf.Anonymous && name == "" && elem.Kind() == reflect.Struct {
		f.typ, f.viaPointer = elem, outer.viaPointer || pointer
		return f, true, true
	}
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "string":
			f.quoted = elem.Kind() == reflect.String || reflect.Bool <= elem.Kind() && elem.Kind() <= reflect.Float64
		}
	}
	return f, false, true
}

// validTagName reports whether encoding/json takes the name from a tag.
func validTagName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// dominantFields drops the fields that others hide.
func dominantFields(fields []jsonField) []jsonField {
	slices.SortStableFunc(fields, func(a, b jsonField) int {
		return cmp.Or(strings.Compare(a.name, b.name), len(a.index)-len(b.index), btoi(b.tagged)-btoi(a.tagged))
	})
	var out []jsonField
	for i := 0; i < len(fields); {
		f, j := fields[i], i+1
		for j < len(fields) && fields[j].name == f.name {
			j++
		}
		if j == i+1 || len(fields[i+1].index) > len(f.index) || fields[i+1].tagged != f.tagged {
			out = append(out, f)
		}
		i = j
	}
	slices.SortFunc(out, func(a, b jsonField) int { return slices.Compare(a.index, b.index) })
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ---- The jsonschema tag -------------------------------------------------

// startsKeyword reports whether s begins with a word and "=".
func startsKeyword(s string) bool {
	i := strings.IndexByte(s, '=')
	return i > 0 && !strings.ContainsFunc(s[:i], func(r rune) bool {
		return r != '-' && r != '_' && r != '$' && (r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// splitTag returns a tag's description and its keywords, as "key=value".
func splitTag(tag string) (text string, pairs []string) {
	from := 0
	cut := func(to int) {
		if from > 0 || startsKeyword(tag) {
			pairs = append(pairs, tag[from:to])
		} else {
			text = tag[:to]
		}
	}
	for i := range len(tag) {
		if tag[i] == ',' && startsKeyword(tag[i+1:]) {
			cut(i)
			from = i + 1
		}
	}
	cut(len(tag))
	return text, pairs
}

// applyTag adds what a field's tag says to its schema.
func applyTag(sh *shape, tag string, optional *bool) error {
	if tag == "" {
		return nil
	}
	text, pairs := splitTag(tag)
	if text != "" {
		if own := sh.member("description"); own.raw != nil {
			known, _ := stringValue(own.raw)
			text += " (" + known + ")"
		}
		sh.setString("description", text)
	}
	slices.SortStableFunc(pairs, func(a, b string) int { // type= first: the others depend on it
		return btoi(strings.HasPrefix(b, "type=")) - btoi(strings.HasPrefix(a, "type="))
	})
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "required":
			if value == "true" || value == "false" {
				*optional = value == "false"
				continue
			}
		case "default":
			*optional = true
		}
		if err := applyTagKeyword(sh, key, value); err != nil {
			return err
		}
	}
	return nil
}

// tagKeywords says for each keyword of a tag which JSON types it is for ("":
// any) and what its value is: a kind of JSON, "count", "name", "list" (of
// names), "value" (of the field's type), "values" (several, as an array).
var tagKeywords = map[string][2]string{
	"minimum": {"number", "number"}, "maximum": {"number", "number"}, "multipleOf": {"number", "number"},
	"exclusiveMinimum": {"number", "number"}, "exclusiveMaximum": {"number", "number"},
	"minLength": {"string", "count"}, "maxLength": {"string", "count"}, "pattern": {"string", "string"},
	"format": {"string", "string"}, "contentEncoding": {"string", "string"}, "contentMediaType": {"string", "string"},
	"minItems": {"array", "count"}, "maxItems": {"array", "count"}, "uniqueItems": {"array", "boolean"},
	"contains": {"array", "object"}, "minContains": {"array", "count"}, "maxContains": {"array", "count"},
	"minProperties": {"object", "count"}, "maxProperties": {"object", "count"}, "required": {"object", "list"},
	"dependentRequired": {"object", "object"}, "propertyNames": {"object", "object"},
	"enum": {"", "values"}, "const": {"", "value"}, "default": {"", "value"}, "examples": {"", "values"}, "type": {"", "string"},
	"title": {"", "string"}, "description": {"", "string"}, "deprecated": {"", "boolean"},
	"readOnly": {"", "boolean"}, "writeOnly": {"", "boolean"}, "x-mcp-header": {"", "string"},
}

func applyTagKeyword(sh *shape, key, value string) error {
	rule, ok := tagKeywords[key]
	if !ok {
		return fmt.Errorf("the jsonschema tag has the unknown keyword %q", key)
	}
	misfit := func() error {
		return fmt.Errorf("the jsonschema tag's %s=%s does not fit %s", key, value, cmp.Or(sh.kind, "an open type"))
	}
	if items := sh.items(); items != nil && (rule[0] != "" && rule[0] != "array" || key == "enum") {
		return applyTagKeyword(items, key, value)
	}
	switch key {
	case "type":
		if sh.kind != "" && sh.kind != value || !slices.Contains(typeNames[:], value) {
			return misfit()
		}
		sh.kind = value
	case "x-mcp-header": // 2026-07-28 basic/transports/streamable-http § Schema Extension
		if sh.kind != "string" && sh.kind != "integer" && sh.kind != "boolean" {
			return misfit()
		}
	case "multipleOf":
		if !strings.ContainsAny(value, "123456789") || strings.HasPrefix(value, "-") {
			return misfit()
		}
	case "pattern":
		if _, err := regexp.Compile(value); err != nil {
			return fmt.Errorf("%w: %w", misfit(), err)
		}
	}
	if rule[0] != "" && sh.kind != "" && sh.kind != rule[0] && !(rule[0] == "number" && sh.kind == "integer") {
		return misfit()
	}
	raw, ok := tagValue(sh.kind, rule[1], value)
	if !ok {
		return misfit()
	}
	sh.set(key, string(raw))
	return nil
}

var typeNames = [...]string{"null", "boolean", "object", "array", "string", "number", "integer"}

func (sh *shape) items() *shape {
	if sh.kind == "array" && sh.has("items") {
		return sh.member("items").sub
	}
	return nil
}

// tagValue turns a tag's text into JSON of the form that is asked for. A
// field of JSON type kind takes values of it.
func tagValue(kind, form, text string) (raw []byte, ok bool) {
	switch form {
	case "value":
		form = kind
	case "values", "list":
		raw = []byte{'['}
		if form == "list" {
			kind = "string"
		}
		for i, item := range strings.Split(text, "|") {
			if i > 0 {
				raw = append(raw, ',')
			}
			v, ok := tagValue(kind, kind, item)
			if !ok {
				return nil, false
			}
			raw = append(raw, v...)
		}
		return append(raw, ']'), true
	}
	if form == "string" {
		return appendString(nil, text), true
	}
	raw = bytes.TrimSpace([]byte(text))
	if validJSON(raw) != nil {
		return appendString(nil, text), form == ""
	}
	switch form {
	case "":
		ok = true
	case "count":
		ok = isInteger(raw) && raw[0] != '-'
	case "integer":
		ok = isInteger(raw)
	default:
		ok = jsonTypeOf(raw[0]) == form
	}
	return raw, ok
}

// jsonTypeOf returns the JSON type of a value by its first byte.
func jsonTypeOf(c byte) string {
	switch c {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
