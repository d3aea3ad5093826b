package mcp

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
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
// Text up to the first ",keyword=" is the description; a tag may as well begin
// with "keyword=". A value ends at the next ",keyword=". Values of enum and
// examples are separated by |. Values that are not scalars are JSON. Every
// assertion keyword of 2020-12 works, as do title, default, examples,
// deprecated, readOnly, writeOnly, contentEncoding, contentMediaType and
// x-mcp-header; required=true or false overrides the rule above, and type=
// gives an open type one. On a slice or array, keywords that are not about
// arrays describe its elements.
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
	elem    reflect.Type // of an array that is a $ref, which has no items of its own yet
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
	deep  bool                    // has defaults that are objects or arrays
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
	in.markNil(sh, root, pointer)
	schema := json.RawMessage(sh.append(nil))
	if in.deep && !nulls {
		if err := checkDefaults(schema); err != nil {
			return nil, fmt.Errorf("mcp: no schema for %v: %w", t, err)
		}
	}
	return schema, nil
}

// checkDefaults checks defaults against all that is said of their values,
// which a field's own keywords are not where it has fields itself.
func checkDefaults(schema json.RawMessage) error {
	k := schemaCompiler{opts: new(SchemaOptions)}
	s, err := k.compile(schema, dialect{vocabularies: vocab2020})
	if err != nil {
		return err
	}
	nodes := s.root.place.doc.nodes
	for _, at := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[at]
		if n.fallback == nil {
			continue
		}
		whole := &Schema{root: n, dynamic: s.dynamic, defaults: true}
		if err := whole.Validate(whole.applyDefaults(n.fallback)); err != nil {
			return placeError(n.place, "default", fmt.Errorf("%s does not fit: %w", n.fallback, err))
		}
	}
	return nil
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
		if sh.kind == "array" {
			sh.elem = elem.Elem()
		}
	} else if sh, err = in.inline(elem, pointer); err != nil {
		return nil, err
	}
	in.markNil(sh, elem, pointer)
	return sh, nil
}

// markNil marks a schema that is to accept Go's nil.
func (in *inference) markNil(sh *shape, t reflect.Type, pointer bool) {
	nilable := pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
	if in.nulls && nilable && len(sh.members) > 0 {
		sh.set(nullKeyword, "true")
	}
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
	ptr := reflect.PointerTo(t)
	if ptr.NumMethod() == 0 && t.Kind() != reflect.Interface {
		return nil, nil // as most
	}
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
	marshals, texts := jsonMethods(t)
	if ptr.Implements(schemaMethodType) {
		if raw, err := ownSchema(t, marshals || texts); raw != nil || err != nil {
			return parseShape(raw, err)
		}
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

// jsonMethods reports whether a type's JSON is that of its methods, for JSON
// or for text.
func jsonMethods(t reflect.Type) (marshals, texts bool) {
	ptr := reflect.PointerTo(t)
	return ptr.Implements(marshalerType) || ptr.Implements(unmarshalerType), ptr.Implements(textMarshalerType) || ptr.Implements(textUnmarshalerType)
}

func hasOwnJSON(t reflect.Type) bool {
	marshals, texts := jsonMethods(t)
	return marshals || texts
}

// ownSchema calls the JSONSchema of a type. It returns nil for a struct that
// has the method from an embedded field, whose schema is not that of the
// whole, unless its JSON is that field's, too.
func ownSchema(t reflect.Type, whole bool) (raw json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("JSONSchema of %v panics: %v", t, r)
		}
	}()
	call := func(t reflect.Type) json.RawMessage { return reflect.New(t).Interface().(schemaMethod).JSONSchema() }
	var embedded []json.RawMessage
	for i := 0; !whole && t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		switch {
		case !f.Anonymous:
		case f.Type.Implements(schemaMethodType) && (f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Interface):
			return nil, nil
		case reflect.PointerTo(f.Type).Implements(schemaMethodType):
			embedded = append(embedded, call(f.Type))
		}
	}
	raw = call(t)
	if slices.ContainsFunc(embedded, func(e json.RawMessage) bool { return bytes.Equal(e, raw) }) {
		return nil, nil
	}
	return raw, nil
}

// parseShape reads the schema that a type offers.
func parseShape(raw json.RawMessage, err error) (*shape, error) {
	if err != nil {
		return nil, err
	}
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
		in.deep = in.deep || (prop.kind == "object" || prop.kind == "array") && prop.has("default")
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
	case sh.kind == "number":
		quoted.setString("pattern", `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	case sh.kind == "boolean":
		quoted.set("enum", `["true","false"]`)
	case sh.kind == "string": // with the JSON of a string in it
		quoted.setString("pattern", `^"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"$`)
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
	var times map[reflect.Type]int // a struct embedded twice on one level hides its own fields
	for level := []jsonField{{typ: t}}; len(level) > 0; {
		var next []jsonField
		nextTimes := map[reflect.Type]int{}
		for _, outer := range level {
			if visited[outer.typ] {
				continue
			}
			visited[outer.typ] = true
			for i := range outer.typ.NumField() {
				f, embedded, ok := jsonFieldOf(outer, i)
				switch {
				case !ok:
				case embedded:
					if nextTimes[f.typ]++; nextTimes[f.typ] == 1 {
						next = append(next, f)
					}
				case times[outer.typ] > 1:
					fields = append(fields, f, f)
				default:
					fields = append(fields, f)
				}
			}
		}
		level, times = next, nextTimes
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
			kind := elem.Kind()
			if pointer && sf.Type.Name() != "" {
				kind = reflect.Pointer
			}
			f.quoted = (kind == reflect.String || reflect.Bool <= kind && kind <= reflect.Float64) && !hasOwnJSON(elem)
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
	rank := func(pair string) int { // the others depend on type, and required has the last word
		return btoi(pair == "required=true" || pair == "required=false") - btoi(strings.HasPrefix(pair, "type="))
	}
	slices.SortStableFunc(pairs, func(a, b string) int { return rank(a) - rank(b) })
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
	if len(pairs) == 0 {
		return nil
	}
	return sh.checkOwn()
}

// checkOwn checks the keywords of a field's schema, leaving out what only
// makes sense within the whole, and that its default and examples fit it. An
// object needs the whole: see checkDefaults.
func (sh *shape) checkOwn() error {
	own := &shape{members: slices.Clone(sh.members)}
	own.members = slices.DeleteFunc(own.members, func(m shapeMember) bool {
		return m.key == "$ref" || m.sub != nil && (m.key != "items" || m.sub.has("$ref") || slices.ContainsFunc(m.sub.members, func(m shapeMember) bool { return m.sub != nil }))
	})
	k := schemaCompiler{opts: new(SchemaOptions)}
	compiled, err := k.compile(own.append(nil), dialect{vocabularies: vocab2020})
	if err != nil {
		return fmt.Errorf("the jsonschema tag is wrong: %w", err)
	}
	for _, m := range sh.members {
		if m.key == "items" && m.sub != nil { // which may have keywords of the tag, too
			if err := m.sub.checkOwn(); err != nil {
				return err
			}
		}
	}
	if sh.kind == "object" {
		return nil
	}
	var values []keywordValue
	if sh.has("examples") {
		values, _ = keywordValue{schemaPlace: schemaPlace{doc: &schemaDoc{raw: sh.member("examples").raw}}}.elements()
	}
	if sh.has("default") {
		values = append(values, keywordValue{raw: sh.member("default").raw})
	}
	for _, v := range values {
		if err := compiled.Validate(v.raw); err != nil {
			return fmt.Errorf("the jsonschema tag's value %s does not fit: %w", v.raw, err)
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

// items returns the schema of an array's elements, for what a tag says of them,
// nil if sh is not one. Beside a $ref it has nothing else.
func (sh *shape) items() *shape {
	switch {
	case sh.kind == "array" && sh.has("items"):
		return sh.member("items").sub
	case sh.elem == nil:
		return nil
	}
	elem, pointer, _ := dereference(sh.elem)
	items := &shape{kind: naturalKind(elem)}
	if own, err := ownShape(elem, pointer); own != nil && err == nil {
		items.kind = own.kind
	} else if items.kind == "array" {
		items.elem = elem.Elem()
	}
	sh.setSub("items", items)
	return items
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

// ---- Compilation --------------------------------------------------------

// A Schema is a compiled JSON Schema. It is safe for use by several
// goroutines at once.
type Schema struct {
	root     *schemaNode
	dynamic  bool // has $dynamicRef: the way to a schema matters
	defaults bool // has default
}

// SchemaOptions are the options of [CompileSchema]. The zero value, and nil,
// know only the schema itself, and take format as an annotation.
type SchemaOptions struct {
	// Documents are the schemas that $ref and $schema may name besides, by
	// absolute URI without fragment. Nothing is ever fetched.
	Documents map[string]json.RawMessage

	// AssertFormat makes a string that is not of its format invalid, and in
	// draft-07 one whose content is not base64 or JSON where contentEncoding or
	// contentMediaType says that it is. The formats are those of the
	// specification; others are ignored.
	AssertFormat bool
}

// The bounds of what is compiled and checked, so that a hostile schema or
// document ends in an error in bounded time (2026-07-28 basic §
// Composition-Keyword Resource Use).
const (
	maxSubschemas   = 20000    // in a schema and the documents it reaches
	maxSchemaDepth  = 500      // of schemas in schemas
	maxCompileWork  = 64 << 20 // bytes read to find the targets of references
	maxCheckDepth   = 10000    // of checks in checks
	maxCompareDepth = 200      // of values in values that are compared whole
	maxPatterns     = 1000     // different regular expressions
	maxPatternLen   = 10000    // of one, in bytes
	maxProblems     = 10       // reported at once
	checkWork       = 1 << 20  // steps for any document, and more by its length:
	checkWorkByte   = 16
)

// CompileSchema prepares a schema for use. The dialects are 2020-12, also
// where $schema is absent, and draft-07; any other is an error that says so,
// unless SchemaOptions.Documents has a meta-schema of that name that chooses
// among the vocabularies of 2020-12.
//
// A schema that is not valid in its dialect, that refers to a document which
// was not given, or that has a pattern which [regexp] cannot express (look-around,
// back-references, counts over 1000) is an error that names the place.
//
// The required cases of the official JSON Schema Test Suite all pass, and the
// optional ones but for seven: four have a look-behind or a back-reference,
// which RE2 lacks (ecmascript-regex, two in each draft), and three refer to
// draft 2019-09 (cross-draft, one in 2020-12 and two in draft-07).
func CompileSchema(schema json.RawMessage, opts *SchemaOptions) (*Schema, error) {
	if opts == nil {
		opts = new(SchemaOptions)
	}
	k := schemaCompiler{opts: opts}
	s, err := k.compile(schema, dialect{vocabularies: vocab2020})
	if err != nil {
		return nil, fmt.Errorf("mcp: invalid schema: %w", err)
	}
	return s, nil
}

// compileInferred is CompileSchema for the schemas of inferSchema, which may
// say where Go's nil is accepted.
func compileInferred(t reflect.Type) (*Schema, error) {
	schema, err := inferSchema(t, true)
	if err != nil {
		return nil, err
	}
	k := schemaCompiler{opts: new(SchemaOptions), inferred: true}
	return k.compile(schema, dialect{vocabularies: vocab2020})
}

// argumentsSchema returns the schema of a tool's argument type as it is sent,
// and one to check arguments with, which also accepts Go's nil. A type whose
// JSON is open stands for any object; one whose JSON is not an object is an
// error (2026-07-28 server/tools § Tool).
func argumentsSchema(t reflect.Type) (json.RawMessage, *Schema, error) {
	schema, err := schemaForType(t)
	if err != nil {
		return nil, nil, err
	}
	if string(schema) == "{}" {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
		s, err := CompileSchema(schema, nil)
		return schema, s, err
	}
	s, err := compileInferred(t)
	if err == nil && s.root.types != objectType {
		err = fmt.Errorf("mcp: the arguments of a tool are a JSON object, which %v is not", t)
	}
	return schema, s, err
}

// A schemaNode is one compiled schema: what it asks of a value, by type.
type schemaNode struct {
	place    schemaPlace
	resource *schemaResource

	never   bool // the schema false
	null    bool // Go's nil is accepted
	byType  bool // checkByType does all that the schema asks
	types   typeSet
	numbers []valueRule
	strings []valueRule // get the text without quotes and escapes
	values  []valueRule // get the JSON of a value of any type
	object  *objectRules
	array   *arrayRules
	inPlace []inPlaceCheck
	cond    *condition

	unevaluatedProperties *schemaNode
	unevaluatedItems      *schemaNode

	fallback []byte       // default
	always   []*schemaRef // what also describes the value, for defaults: $ref and allOf
	base64   bool         // contentEncoding, where it is asserted
}

// A valueRule is an assertion on one value by its text.
type valueRule struct {
	holds   func(text []byte) bool
	cost    int    // steps for eight bytes
	message string // "must be …"
	isConst bool
}

// A countRule is an assertion on a number of members or items.
type countRule struct {
	holds   func(n int) bool
	message string
}

// An inPlaceCheck applies other schemas to the value at a position. end is
// where the value ends, 0 if the check did not find out.
type inPlaceCheck func(c *checker, at int, ev *evaluated) (end int, ok bool)

type objectRules struct {
	properties []property
	index      map[string]int // of properties by name
	required   []int
	dependent  []dependency
	patterns   []patternProperty
	additional *schemaNode
	names      *schemaNode
	counts     []countRule
}

// A property is a member that some keyword of the object knows by name.
type property struct {
	name string
	node *schemaNode // nil if only its presence matters
}

// A dependency is what the presence of property ifHas asks for.
type dependency struct {
	ifHas    int
	required []int
	node     *schemaNode // or nil
}

type patternProperty struct {
	pattern *regexp.Regexp
	node    *schemaNode
}

type arrayRules struct {
	prefix      []*schemaNode
	items       *schemaNode
	contains    *schemaNode
	minContains int
	maxContains int // -1: any number
	unique      bool
	counts      []countRule
}

type condition struct{ test, then, otherwise *schemaNode }

func (n *schemaNode) forObject() *objectRules {
	if n.object == nil {
		n.object = &objectRules{index: map[string]int{}}
	}
	return n.object
}

func (n *schemaNode) forArray() *arrayRules {
	if n.array == nil {
		n.array = &arrayRules{minContains: 1, maxContains: -1}
	}
	return n.array
}

// slot returns the index of the property of that name.
func (o *objectRules) slot(name string) int {
	i, ok := o.index[name]
	if !ok {
		i = len(o.properties)
		o.properties = append(o.properties, property{name: name})
		o.index[name] = i
	}
	return i
}

// A schemaDoc is one JSON text that holds schemas.
type schemaDoc struct {
	name     string // its URI, or nothing
	raw      []byte
	nodes    map[int]*schemaNode    // by offset
	children map[int]map[string]int // of values that references lead through
}

// A schemaResource is what an $id makes of a schema: the base of the
// references in it, and a name space for anchors.
type schemaResource struct {
	base    *url.URL // nil if there is none
	place   schemaPlace
	dialect dialect
	anchors map[string]*schemaNode
	dynamic map[string]*schemaNode // the anchors that are $dynamicAnchor
}

// A schemaPlace is where a schema is written.
type schemaPlace struct {
	doc      *schemaDoc
	at       int
	resource *schemaResource // that it is in, before its own $id
	depth    int
}

// A schemaRef is a reference, resolved when all schemas are known.
type schemaRef struct {
	text    string
	from    *schemaNode
	dynamic bool
	anchor  string // if the target is a $dynamicAnchor: its name
	node    *schemaNode
}

// A dialect is the set of vocabularies in force.
type dialect struct {
	vocabularies vocabulary
	assertFormat bool
}

type vocabulary uint16

const (
	vocabCore vocabulary = 1 << iota
	vocabApplicator
	vocabUnevaluated
	vocabValidation
	vocabMetaData
	vocabFormat
	vocabContent
	vocabDraft7 // all of draft-07

	vocab2020 = vocabDraft7 - 1
)

var vocabularyNames = map[string]vocabulary{
	"core": vocabCore, "applicator": vocabApplicator, "unevaluated": vocabUnevaluated, "validation": vocabValidation,
	"meta-data": vocabMetaData, "format-annotation": vocabFormat, "format-assertion": vocabFormat, "content": vocabContent,
}

const (
	uri2020  = "https://json-schema.org/draft/2020-12/"
	uriDraft = "http://json-schema.org/draft-07/schema"
)

// standardDialect returns the dialect of a meta-schema that is built in.
func standardDialect(uri string) (dialect, bool) {
	switch strings.TrimSuffix(uri, "#") {
	case uri2020 + "schema":
		return dialect{vocabularies: vocab2020}, true
	case uriDraft, "https" + uriDraft[4:]:
		return dialect{vocabularies: vocabDraft7}, true
	}
	return dialect{}, false
}

// A schemaCompiler compiles one schema and what it refers to. Schemas are
// compiled from a queue, so that nesting costs no stack and a reference may
// point anywhere, back to where it is too.
type schemaCompiler struct {
	opts      *SchemaOptions
	schema    *Schema
	resources map[string]*schemaResource // by URI
	queue     []*schemaNode
	refs      []*schemaRef
	nodes     int
	work      int
	inferred  bool
	patterns  map[string]*regexp.Regexp
	onlyCheck bool // whether the schema is valid; references are left alone
}

func (k *schemaCompiler) compile(schema json.RawMessage, d dialect) (*Schema, error) {
	k.schema, k.resources = new(Schema), map[string]*schemaResource{}
	root, err := k.document("", schema, nil, d)
	for err == nil && len(k.queue)+len(k.refs) > 0 {
		if len(k.queue) > 0 {
			n := k.queue[0]
			k.queue = k.queue[1:]
			err = k.compileNode(n)
			continue
		}
		ref := k.refs[0]
		k.refs = k.refs[1:]
		if err = k.resolve(ref); err != nil {
			err = placeError(ref.from.place, "", err)
		}
	}
	if err != nil {
		return nil, err
	}
	k.schema.root = root.root()
	return k.schema, nil
}

// placeError says where in a document a schema is wrong.
func placeError(p schemaPlace, keyword string, err error) error {
	path, _ := pathTo(p.doc.raw, p.at)
	if keyword != "" {
		path += "/" + keyword
	}
	if path = p.doc.name + path; path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// document takes up a JSON text that is a schema.
func (k *schemaCompiler) document(name string, raw json.RawMessage, base *url.URL, d dialect) (*schemaResource, error) {
	if err := validJSON(raw); err != nil {
		return nil, err
	}
	doc := &schemaDoc{name: name, raw: bytes.Clone(raw), nodes: map[int]*schemaNode{}, children: map[int]map[string]int{}}
	s := scanner{data: doc.raw}
	s.peek()
	r := &schemaResource{base: base, dialect: d}
	r.place = schemaPlace{doc: doc, at: s.pos, resource: r}
	if base != nil {
		k.resources[base.String()] = r
	}
	k.node(r.place)
	return r, nil
}

func (r *schemaResource) root() *schemaNode { return r.place.doc.nodes[r.place.at] }

// node returns the schema at a place, which is compiled later if it is new.
func (k *schemaCompiler) node(p schemaPlace) *schemaNode {
	n := p.doc.nodes[p.at]
	if n == nil {
		n = &schemaNode{place: p, resource: p.resource}
		p.doc.nodes[p.at] = n
		k.queue = append(k.queue, n)
	}
	return n
}

// A keywordValue is a keyword, or a member or element of its value.
type keywordValue struct {
	schemaPlace
	key string
	raw []byte
}

func (k *schemaCompiler) compileNode(n *schemaNode) error {
	if k.nodes++; k.nodes > maxSubschemas {
		return fmt.Errorf("it has more than %d subschemas", maxSubschemas)
	}
	if n.place.depth > maxSchemaDepth {
		return fmt.Errorf("it nests deeper than %d schemas", maxSchemaDepth)
	}
	v := keywordValue{schemaPlace: n.place, raw: n.place.doc.raw[n.place.at:]}
	switch v.raw[0] {
	case 't':
		n.byType = true
		return nil
	case 'f':
		n.never = true
		return nil
	case '{':
	default:
		return placeError(n.place, "", errors.New("a schema must be an object or a boolean"))
	}
	keywords, err := v.members()
	if err != nil {
		return placeError(n.place, "", err)
	}
	if err := k.identify(n, keywords); err != nil {
		return placeError(n.place, "", err)
	}
	active := n.resource.dialect.vocabularies
	hasRef := slices.ContainsFunc(keywords, func(v keywordValue) bool { return v.key == "$ref" })
	for _, v := range keywords {
		if active == vocabDraft7 && hasRef && v.key != "$ref" && v.key != "definitions" {
			continue // draft-07 core § 8.3: beside $ref the others are ignored
		}
		v.resource, v.depth = n.resource, n.place.depth+1
		keyword, ok := schemaKeywords[v.key]
		if !ok || keyword.in&active == 0 {
			if v.key == nullKeyword && k.inferred {
				n.null = true
			}
			continue
		}
		if err := keyword.compile(k, n, v); err != nil {
			return placeError(n.place, v.key, err)
		}
	}
	n.byType = len(n.values)+len(n.inPlace) == 0 && n.unevaluatedProperties == nil && n.unevaluatedItems == nil
	return nil
}

// members returns the members of an object in order.
func (v keywordValue) members() ([]keywordValue, error) {
	s := scanner{data: v.doc.raw, pos: v.at}
	if s.peek() != '{' {
		return nil, errors.New("must be an object")
	}
	members := make([]keywordValue, 0, 8)
	seen := make(map[string]bool, 8)
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		m := v.child(&s, string(s.key()))
		if seen[m.key] {
			return nil, fmt.Errorf("%s is given twice", m.key)
		}
		seen[m.key] = true
		members = append(members, m)
	}
	return members, nil
}

// elements returns the elements of an array. Their keys are their indices.
func (v keywordValue) elements() ([]keywordValue, error) {
	s := scanner{data: v.doc.raw, pos: v.at}
	if s.peek() != '[' {
		return nil, errors.New("must be an array")
	}
	var elements []keywordValue
	s.open('[')
	for n := 0; s.more(']', n); n++ {
		elements = append(elements, v.child(&s, strconv.Itoa(n)))
	}
	return elements, nil
}

// child returns the member or element that s is at.
func (v keywordValue) child(s *scanner, key string) keywordValue {
	s.peek()
	v.key, v.at = key, s.pos
	v.raw = s.skip()
	return v
}

func (v keywordValue) text() (string, error) {
	text, ok := stringValue(v.raw)
	if !ok {
		return "", errors.New("must be a string")
	}
	return text, nil
}

// texts returns the elements of an array of different strings.
func (v keywordValue) texts() ([]string, error) {
	elements, err := v.elements()
	if err != nil {
		return nil, err
	}
	texts, seen := make([]string, len(elements)), make(map[string]bool, len(elements))
	for i, e := range elements {
		if texts[i], err = e.text(); err != nil {
			return nil, errors.New("must be an array of strings")
		}
		if seen[texts[i]] {
			return nil, fmt.Errorf("lists %q twice", texts[i])
		}
		seen[texts[i]] = true
	}
	return texts, nil
}

// count returns an integer that is not negative; one that is too large for
// an int is the largest int.
func (v keywordValue) count() (int, error) {
	if c := v.raw[0]; c < '0' || c > '9' || !isIntegral(v.raw) {
		return 0, errors.New("must be an integer that is not negative")
	}
	d := parseDecimal(nil, v.raw)
	n := 0
	for i := range d.exp {
		digit := 0
		if i < len(d.digits) {
			digit = int(d.digits[i] - '0')
		}
		if n > (math.MaxInt-digit)/10 {
			return math.MaxInt, nil
		}
		n = n*10 + digit
	}
	return n, nil
}

// identify handles the keywords that say what the others mean: $schema, $id,
// $anchor and $dynamicAnchor. draft-07 has anchors in $id, and $ref hides it.
func (k *schemaCompiler) identify(n *schemaNode, keywords []keywordValue) (err error) {
	var schema, id, anchor, dynamicAnchor string
	hasRef := false
	for _, v := range keywords {
		var to *string
		switch v.key {
		case "$schema":
			to = &schema
		case "$id":
			to = &id
		case "$anchor":
			to = &anchor
		case "$dynamicAnchor":
			to = &dynamicAnchor
		case "$ref":
			hasRef = true
			continue
		default:
			continue
		}
		if *to, err = v.text(); err != nil && (v.key != "$anchor" && v.key != "$dynamicAnchor" || !n.resource.isDraft7()) {
			return fmt.Errorf("%s %w", v.key, err)
		}
	}
	isRoot := n.place == n.resource.place
	if schema != "" && !k.onlyCheck && (isRoot || id != "") {
		d, err := k.dialect(schema)
		if err != nil {
			return err
		}
		if !isRoot {
			n.resource = &schemaResource{base: n.resource.base, place: n.place}
		}
		n.resource.dialect = d
	}
	uri, fragment, _ := strings.Cut(id, "#")
	switch {
	case n.resource.isDraft7() && hasRef:
		return nil
	case n.resource.isDraft7():
		anchor, dynamicAnchor = fragment, ""
	case fragment != "":
		return fmt.Errorf("$id %q must not have a fragment", id)
	}
	if uri != "" {
		if err := k.newResource(n, uri); err != nil {
			return err
		}
	}
	return n.addAnchors(anchor, dynamicAnchor)
}

func (r *schemaResource) isDraft7() bool { return r.dialect.vocabularies == vocabDraft7 }

func (n *schemaNode) addAnchors(anchor, dynamicAnchor string) error {
	r := n.resource
	for _, name := range []string{anchor, dynamicAnchor} {
		switch {
		case name == "":
			continue
		case !r.isDraft7() && !validAnchor(name):
			return fmt.Errorf("the anchor %q must be a word", name)
		case r.anchors == nil:
			r.anchors, r.dynamic = map[string]*schemaNode{}, map[string]*schemaNode{}
		}
		if old := r.anchors[name]; old != nil && old != n {
			return fmt.Errorf("the anchor %q is given twice", name)
		}
		r.anchors[name] = n
	}
	if dynamicAnchor != "" {
		r.dynamic[dynamicAnchor] = n
	}
	return nil
}

func validAnchor(name string) bool {
	for i, c := range []byte(name) {
		if c != '_' && !('a' <= c|0x20 && c|0x20 <= 'z') && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// newResource makes n the root of a resource of its own.
func (k *schemaCompiler) newResource(n *schemaNode, id string) error {
	old := n.resource
	uri, err := resolveURI(old.base, id)
	if err != nil {
		return fmt.Errorf("$id %w", err)
	}
	r := &schemaResource{base: uri, place: n.place, dialect: old.dialect}
	if known := k.resources[uri.String()]; known != nil && (known.place.doc != n.place.doc || known.place.at != n.place.at) {
		return fmt.Errorf("$id %q is the name of two schemas", uri)
	}
	k.resources[uri.String()] = r
	n.resource = r
	return nil
}

func resolveURI(base *url.URL, ref string) (*url.URL, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URI reference", ref)
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	return u, nil
}

// dialect returns the dialect that $schema names.
func (k *schemaCompiler) dialect(uri string) (dialect, error) {
	if d, ok := standardDialect(uri); ok {
		return d, nil
	}
	unsupported := fmt.Errorf("the dialect %q is unsupported: only 2020-12 and draft-07 are known", uri)
	raw, ok := k.opts.Documents[strings.TrimSuffix(uri, "#")]
	if !ok || validJSON(raw) != nil {
		return dialect{}, unsupported
	}
	var d dialect
	meta, err := keywordValue{schemaPlace: schemaPlace{doc: &schemaDoc{raw: raw}}}.members()
	if err != nil {
		return dialect{}, err
	}
	for _, v := range meta {
		switch text, _ := v.text(); v.key {
		case "$schema":
			if standard, ok := standardDialect(text); !ok || standard.vocabularies != vocab2020 {
				return dialect{}, unsupported
			}
		case "$vocabulary":
			if d, err = vocabularies(v); err != nil {
				return dialect{}, err
			}
		}
	}
	if d.vocabularies == 0 {
		d.vocabularies = vocab2020
	}
	return d, nil
}

func vocabularies(v keywordValue) (d dialect, err error) {
	members, err := v.members()
	if err != nil {
		return d, err
	}
	d.vocabularies = vocabCore
	for _, m := range members {
		name, standard := strings.CutPrefix(m.key, uri2020+"vocab/")
		bit := vocabularyNames[name]
		if (!standard || bit == 0) && string(m.raw) != "false" {
			return d, fmt.Errorf("the vocabulary %q is unsupported", m.key)
		}
		if standard {
			d.vocabularies |= bit
			d.assertFormat = d.assertFormat || name == "format-assertion" // even if it may be ignored
		}
	}
	return d, nil
}

// resolve finds the schema that a reference points to.
func (k *schemaCompiler) resolve(ref *schemaRef) error {
	if k.onlyCheck {
		return nil
	}
	r := ref.from.resource
	uri, fragment, _ := strings.Cut(ref.text, "#")
	if uri != "" {
		target, err := resolveURI(r.base, uri)
		if err != nil {
			return err
		}
		if r = k.resources[target.String()]; r == nil {
			return k.newDocument(ref, target)
		}
	}
	r = r.root().resource // it may have taken another $id
	fragment, err := url.PathUnescape(fragment)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URI reference", ref.text)
	case fragment == "":
		ref.node = k.node(r.place)
	case fragment[0] == '/':
		ref.node, err = k.follow(r, fragment)
	case r.anchors[fragment] != nil:
		ref.node = r.anchors[fragment]
		if ref.dynamic && r.dynamic[fragment] == ref.node {
			ref.anchor = fragment
		}
	default:
		err = errors.New("there is no such anchor")
	}
	if err != nil {
		return fmt.Errorf("cannot resolve the reference %q: %w", ref.text, err)
	}
	return nil
}

// newDocument takes up the document that a reference is the first to name, and
// puts off the reference until it is compiled. Documents come from the caller
// and nowhere else (2026-07-28 basic § $ref Resolution).
func (k *schemaCompiler) newDocument(ref *schemaRef, uri *url.URL) error {
	name := uri.String()
	raw, ok := k.opts.Documents[name]
	if !ok {
		if d, ok := standardDialect(name); ok {
			ref.node = metaSchema(d)
			return nil
		}
		return fmt.Errorf("the reference to %q is refused: no such document was supplied, and none is fetched", name)
	}
	k.refs = append(k.refs, ref)
	_, err := k.document(name, raw, uri, ref.from.resource.dialect)
	return err
}

// follow walks a JSON pointer from the root of a resource. What lies there is
// a schema from then on, even below a keyword that is unknown.
func (k *schemaCompiler) follow(r *schemaResource, pointer string) (*schemaNode, error) {
	doc, at := r.place.doc, r.place.at
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		children, err := k.children(doc, at)
		if err != nil {
			return nil, err
		}
		if at = children[token]; at == 0 {
			return nil, errors.New("there is nothing")
		}
		if n := doc.nodes[at]; n != nil {
			r = n.resource
		}
	}
	return k.node(schemaPlace{doc: doc, at: at, resource: r}), nil
}

// children returns where the members or elements of a value are, by key or
// index.
func (k *schemaCompiler) children(doc *schemaDoc, at int) (map[string]int, error) {
	if known := doc.children[at]; known != nil {
		return known, nil
	}
	v := keywordValue{schemaPlace: schemaPlace{doc: doc, at: at}}
	values, err := v.members()
	if err != nil {
		values, _ = v.elements()
	}
	children := make(map[string]int, len(values))
	for _, c := range values {
		children[c.key] = c.at
		k.work += len(c.raw)
	}
	if k.work > maxCompileWork {
		return nil, errors.New("the references take too long to follow")
	}
	doc.children[at] = children
	return children, nil
}

// metaSchema returns a schema that accepts what compiles: the compiler checks
// all that the meta-schema of a dialect says.
func metaSchema(d dialect) *schemaNode {
	return &schemaNode{resource: &schemaResource{dialect: d}, values: []valueRule{{holds: func(text []byte) bool {
		k := schemaCompiler{opts: new(SchemaOptions), onlyCheck: true}
		_, err := k.compile(text, d)
		return err == nil
	}, cost: 64, message: "must be a valid JSON Schema"}}}
}

// ---- Keywords -----------------------------------------------------------

// A schemaKeyword is one keyword: the vocabularies it belongs to, and how it
// adds itself to a node. $schema, $id, $anchor and $dynamicAnchor are in
// identify.
type schemaKeyword struct {
	in      vocabulary
	compile func(k *schemaCompiler, n *schemaNode, v keywordValue) error
}

var schemaKeywords = map[string]schemaKeyword{
	"$ref":        {vocabCore | vocabDraft7, refKeyword},
	"$dynamicRef": {vocabCore, refKeyword},
	"$defs":       {vocabCore, namedSchemas},
	"definitions": {vocabCore | vocabDraft7, namedSchemas},
	"$comment":    {vocabCore | vocabDraft7, textKeyword},
	"$vocabulary": {vocabCore, vocabularyKeyword},

	"type":             {vocabValidation | vocabDraft7, typeKeyword},
	"enum":             {vocabValidation | vocabDraft7, enumKeyword},
	"const":            {vocabValidation | vocabDraft7, constKeyword},
	"minimum":          {vocabValidation | vocabDraft7, limitKeyword("at least", func(c int) bool { return c >= 0 })},
	"maximum":          {vocabValidation | vocabDraft7, limitKeyword("at most", func(c int) bool { return c <= 0 })},
	"exclusiveMinimum": {vocabValidation | vocabDraft7, limitKeyword("more than", func(c int) bool { return c > 0 })},
	"exclusiveMaximum": {vocabValidation | vocabDraft7, limitKeyword("less than", func(c int) bool { return c < 0 })},
	"multipleOf":       {vocabValidation | vocabDraft7, multipleOfKeyword},
	"minLength": {vocabValidation | vocabDraft7, lengthKeyword("at least", func(text []byte, limit int) bool {
		return len(text) >= limit && utf8.RuneCount(text) >= limit
	})},
	"maxLength": {vocabValidation | vocabDraft7, lengthKeyword("at most", func(text []byte, limit int) bool {
		return len(text) <= limit || utf8.RuneCount(text) <= limit
	})},
	"pattern":  {vocabValidation | vocabDraft7, patternKeyword},
	"format":   {vocabFormat | vocabDraft7, formatKeyword},
	"minItems": {vocabValidation | vocabDraft7, countKeyword("at least", "item", atLeast, (*schemaNode).itemCounts)},
	"maxItems": {vocabValidation | vocabDraft7, countKeyword("at most", "item", atMost, (*schemaNode).itemCounts)},
	"uniqueItems": {vocabValidation | vocabDraft7, func(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
		n.forArray().unique = v.raw[0] == 't'
		return v.mustBe("boolean")
	}},
	"minProperties": {vocabValidation | vocabDraft7, countKeyword("at least", "property", atLeast, (*schemaNode).propertyCounts)},
	"maxProperties": {vocabValidation | vocabDraft7, countKeyword("at most", "property", atMost, (*schemaNode).propertyCounts)},
	"required": {vocabValidation | vocabDraft7, func(_ *schemaCompiler, n *schemaNode, v keywordValue) (err error) {
		n.forObject().required, err = n.slots(v)
		return err
	}},
	"dependentRequired": {vocabValidation, dependenciesKeyword},
	"minContains": {vocabValidation, func(_ *schemaCompiler, n *schemaNode, v keywordValue) (err error) {
		n.forArray().minContains, err = v.count()
		return err
	}},
	"maxContains": {vocabValidation, func(_ *schemaCompiler, n *schemaNode, v keywordValue) (err error) {
		n.forArray().maxContains, err = v.count()
		return err
	}},

	"allOf":                {vocabApplicator | vocabDraft7, allOfKeyword},
	"anyOf":                {vocabApplicator | vocabDraft7, anyOfKeyword},
	"oneOf":                {vocabApplicator | vocabDraft7, oneOfKeyword},
	"not":                  {vocabApplicator | vocabDraft7, notKeyword},
	"if":                   {vocabApplicator | vocabDraft7, conditionKeyword},
	"then":                 {vocabApplicator | vocabDraft7, conditionKeyword},
	"else":                 {vocabApplicator | vocabDraft7, conditionKeyword},
	"dependentSchemas":     {vocabApplicator, dependenciesKeyword},
	"dependencies":         {vocabApplicator | vocabDraft7, dependenciesKeyword},
	"properties":           {vocabApplicator | vocabDraft7, propertiesKeyword},
	"patternProperties":    {vocabApplicator | vocabDraft7, patternPropertiesKeyword},
	"additionalProperties": {vocabApplicator | vocabDraft7, subschema(func(n *schemaNode) **schemaNode { return &n.forObject().additional })},
	"propertyNames":        {vocabApplicator | vocabDraft7, subschema(func(n *schemaNode) **schemaNode { return &n.forObject().names })},
	"prefixItems": {vocabApplicator, func(k *schemaCompiler, n *schemaNode, v keywordValue) (err error) {
		n.forArray().prefix, err = k.schemas(v)
		return err
	}},
	"items":           {vocabApplicator | vocabDraft7, itemsKeyword},
	"additionalItems": {vocabDraft7, additionalItemsKeyword},
	"contains":        {vocabApplicator | vocabDraft7, subschema(func(n *schemaNode) **schemaNode { return &n.forArray().contains })},

	"unevaluatedProperties": {vocabUnevaluated, subschema(func(n *schemaNode) **schemaNode { return &n.unevaluatedProperties })},
	"unevaluatedItems":      {vocabUnevaluated, subschema(func(n *schemaNode) **schemaNode { return &n.unevaluatedItems })},

	"default": {vocabMetaData | vocabDraft7, func(k *schemaCompiler, n *schemaNode, v keywordValue) error {
		n.fallback, k.schema.defaults = v.raw, true
		return nil
	}},
	"title":            {vocabMetaData | vocabDraft7, textKeyword},
	"description":      {vocabMetaData | vocabDraft7, textKeyword},
	"examples":         {vocabMetaData | vocabDraft7, func(_ *schemaCompiler, _ *schemaNode, v keywordValue) error { return v.mustBe("array") }},
	"deprecated":       {vocabMetaData, flagKeyword},
	"readOnly":         {vocabMetaData | vocabDraft7, flagKeyword},
	"writeOnly":        {vocabMetaData | vocabDraft7, flagKeyword},
	"contentEncoding":  {vocabContent | vocabDraft7, contentKeyword},
	"contentMediaType": {vocabContent | vocabDraft7, contentKeyword},
	"contentSchema":    {vocabContent, func(k *schemaCompiler, _ *schemaNode, v keywordValue) error { k.node(v.schemaPlace); return nil }},
}

func (v keywordValue) mustBe(jsonType string) error {
	if jsonTypeOf(v.raw[0]) != jsonType {
		return fmt.Errorf("must be of type %s", jsonType)
	}
	return nil
}

// vocabularyKeyword only checks: the keyword speaks to schemas that name this
// one as their $schema.
func vocabularyKeyword(_ *schemaCompiler, _ *schemaNode, v keywordValue) error {
	members, err := v.members()
	for _, m := range members {
		if err == nil {
			err = m.mustBe("boolean")
		}
	}
	return err
}

func textKeyword(_ *schemaCompiler, _ *schemaNode, v keywordValue) error { return v.mustBe("string") }
func flagKeyword(_ *schemaCompiler, _ *schemaNode, v keywordValue) error { return v.mustBe("boolean") }

// subschema compiles a keyword whose value is one schema.
func subschema(field func(*schemaNode) **schemaNode) func(*schemaCompiler, *schemaNode, keywordValue) error {
	return func(k *schemaCompiler, n *schemaNode, v keywordValue) error {
		*field(n) = k.node(v.schemaPlace)
		return nil
	}
}

// schemas compiles an array of schemas that is not empty.
func (k *schemaCompiler) schemas(v keywordValue) ([]*schemaNode, error) {
	elements, err := v.elements()
	if err == nil && len(elements) == 0 {
		err = errors.New("must not be empty")
	}
	nodes := make([]*schemaNode, len(elements))
	for i, e := range elements {
		nodes[i] = k.node(e.schemaPlace)
	}
	return nodes, err
}

func namedSchemas(k *schemaCompiler, _ *schemaNode, v keywordValue) error {
	members, err := v.members()
	for _, m := range members {
		k.node(m.schemaPlace)
	}
	return err
}

func refKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	text, err := v.text()
	ref := &schemaRef{text: text, from: n, dynamic: v.key == "$dynamicRef"}
	k.refs = append(k.refs, ref)
	k.schema.dynamic = k.schema.dynamic || ref.dynamic
	n.always = append(n.always, ref)
	n.inPlace = append(n.inPlace, func(c *checker, at int, ev *evaluated) (int, bool) {
		return c.check(c.target(ref), at, ev)
	})
	return err
}

// A typeSet is a set of JSON types.
type typeSet uint8

const (
	nullType typeSet = 1 << iota // in the order of typeNames
	booleanType
	objectType
	arrayType
	stringType
	numberType
	integerType
)

var typeWords = [...]string{"null", "a boolean", "an object", "an array", "a string", "a number", "an integer"}

// String lists the types as an error message does.
func (t typeSet) String() string {
	var words []string
	for i, word := range typeWords {
		if t&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

func typeKeyword(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
	var names []string
	name, err := v.text()
	if names = []string{name}; err != nil {
		if names, err = v.texts(); err != nil || len(names) == 0 {
			return errors.New("must be a type or an array of different types")
		}
	}
	for _, name := range names {
		i := slices.Index(typeNames[:], name)
		if i < 0 {
			return fmt.Errorf("%q is not a type", name)
		}
		n.types |= 1 << i
	}
	if n.types&objectType != 0 {
		n.forObject() // its members are looked at, if only for being given once
	}
	return nil
}

func enumKeyword(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
	elements, err := v.elements()
	if err != nil {
		return err
	}
	values := make([]constant, len(elements))
	message := []byte("must be one of ")
	for i, e := range elements {
		values[i] = newConstant(e.raw)
		if i > 0 {
			message = append(message, ", "...)
		}
		message = appendShort(message, e.raw, 40)
	}
	n.values = append(n.values, valueRule{holds: func(text []byte) bool {
		return slices.ContainsFunc(values, func(c constant) bool { return c.equals(text) })
	}, cost: 1 + len(values)/8, isConst: len(values) == 1, message: string(appendShort(nil, message, 400))})
	return nil
}

func constKeyword(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
	n.values = append(n.values, valueRule{holds: newConstant(v.raw).equals, cost: 1, isConst: true,
		message: string(appendShort([]byte("must be "), v.raw, 100))})
	return nil
}

// appendShort appends a text for a message, cut if it is long.
func appendShort(dst, text []byte, limit int) []byte {
	if len(text) <= limit {
		return append(dst, text...)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return append(append(dst, text[:limit]...), "…"...)
}

func limitKeyword(words string, holds func(c int) bool) func(*schemaCompiler, *schemaNode, keywordValue) error {
	return func(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
		if err := v.mustBe("number"); err != nil {
			return err
		}
		limit := newNumber(v.raw)
		n.numbers = append(n.numbers, valueRule{holds: func(text []byte) bool {
			return holds(compareNumber(text, &limit))
		}, message: string(appendShort([]byte("must be "+words+" "), v.raw, 40))})
		return nil
	}
}

func multipleOfKeyword(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
	if err := v.mustBe("number"); err != nil {
		return err
	}
	divisor := newNumber(v.raw)
	if divisor.neg || len(divisor.digits) == 0 || len(divisor.digits) > 1000 {
		return errors.New("must be greater than 0, and have at most 1000 digits")
	}
	n.numbers = append(n.numbers, valueRule{holds: func(text []byte) bool {
		return isMultiple(text, &divisor)
	}, cost: 32, message: string(appendShort([]byte("must be a multiple of "), v.raw, 40))})
	return nil
}

func lengthKeyword(words string, holds func(text []byte, limit int) bool) func(*schemaCompiler, *schemaNode, keywordValue) error {
	return func(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
		limit, err := v.count()
		n.strings = append(n.strings, valueRule{holds: func(text []byte) bool { return holds(text, limit) },
			message: "must be " + words + " " + plural(limit, "character") + " long"})
		return err
	}
}

func plural(n int, noun string) string {
	text := strconv.Itoa(n) + " " + noun
	switch {
	case n == 1:
		return text
	case strings.HasSuffix(text, "y"):
		return text[:len(text)-1] + "ies"
	}
	return text + "s"
}

func atLeast(n, limit int) bool { return n >= limit }
func atMost(n, limit int) bool  { return n <= limit }

func (n *schemaNode) itemCounts() *[]countRule     { return &n.forArray().counts }
func (n *schemaNode) propertyCounts() *[]countRule { return &n.forObject().counts }

func countKeyword(words, noun string, holds func(n, limit int) bool, rules func(*schemaNode) *[]countRule) func(*schemaCompiler, *schemaNode, keywordValue) error {
	return func(_ *schemaCompiler, n *schemaNode, v keywordValue) error {
		limit, err := v.count()
		to := rules(n)
		*to = append(*to, countRule{func(n int) bool { return holds(n, limit) }, "must have " + words + " " + plural(limit, noun)})
		return err
	}
}

func patternKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	text, err := v.text()
	if err != nil || k.onlyCheck {
		return err
	}
	pattern, err := k.pattern(text)
	n.strings = append(n.strings, valueRule{holds: func(text []byte) bool { return pattern.Match(text) }, cost: 8,
		message: string(appendShort([]byte("must match the pattern "), []byte(text), 200))})
	return err
}

func formatKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	text, err := v.text()
	if holds := formats[text]; holds != nil && (k.opts.AssertFormat || n.resource.dialect.assertFormat) {
		n.strings = append(n.strings, valueRule{holds: func(text []byte) bool { return holds(string(text)) }, cost: 8,
			message: "must be a valid " + text})
	}
	return err
}

// contentKeyword serves contentEncoding and contentMediaType, which draft-07
// may assert (its validation § 8) and 2020-12 does not.
func contentKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	text, err := v.text()
	if err != nil || !n.resource.isDraft7() || !k.opts.AssertFormat {
		return err
	}
	decoded := func(text []byte) ([]byte, bool) {
		if !n.base64 {
			return text, true
		}
		text, err := base64.StdEncoding.DecodeString(string(text))
		return text, err == nil
	}
	switch {
	case v.key == "contentEncoding" && text == "base64":
		n.base64 = true
		n.strings = append(n.strings, valueRule{cost: 8, message: "must be base64",
			holds: func(text []byte) bool { _, ok := decoded(text); return ok }})
	case v.key == "contentMediaType" && text == "application/json":
		n.strings = append(n.strings, valueRule{cost: 8, message: "must be JSON",
			holds: func(text []byte) bool { content, ok := decoded(text); return ok && validJSON(content) == nil }})
	}
	return nil
}

// slots returns the properties that the array of names v names.
func (n *schemaNode) slots(v keywordValue) ([]int, error) {
	names, err := v.texts()
	slots := make([]int, len(names))
	for i, name := range names {
		slots[i] = n.forObject().slot(name)
	}
	return slots, err
}

// dependenciesKeyword serves dependentRequired, whose values are arrays of
// names, dependentSchemas, whose values are schemas, and draft-07's
// dependencies, which takes both.
func dependenciesKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	members, err := v.members()
	for _, m := range members {
		d := dependency{ifHas: n.forObject().slot(m.key)}
		arrayType := m.raw[0] == '['
		switch {
		case v.key == "dependentRequired" || arrayType && v.key == "dependencies":
			if d.required, err = n.slots(m); err != nil {
				return fmt.Errorf("%s: %w", m.key, err)
			}
		default:
			d.node = k.node(m.schemaPlace)
		}
		n.object.dependent = append(n.object.dependent, d)
	}
	return err
}

func propertiesKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	members, err := v.members()
	o := n.forObject()
	for _, m := range members {
		slot := o.slot(m.key)
		o.properties[slot].node = k.node(m.schemaPlace)
	}
	return err
}

func patternPropertiesKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	members, err := v.members()
	for _, m := range members {
		p := patternProperty{node: k.node(m.schemaPlace)}
		if !k.onlyCheck {
			if p.pattern, err = k.pattern(m.key); err != nil {
				return err
			}
		}
		n.forObject().patterns = append(n.forObject().patterns, p)
	}
	return err
}

func itemsKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) (err error) {
	a := n.forArray()
	if v.raw[0] != '[' || !n.resource.isDraft7() {
		a.items = k.node(v.schemaPlace)
		return nil
	}
	a.prefix, err = k.schemas(v)
	return err
}

// additionalItemsKeyword is draft-07's word for items beside an array of items;
// without one it says nothing.
func additionalItemsKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	rest := k.node(v.schemaPlace)
	siblings, err := keywordValue{schemaPlace: n.place}.members()
	for _, s := range siblings {
		if s.key == "items" && s.raw[0] == '[' {
			n.forArray().items = rest
		}
	}
	return err
}

func allOfKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	nodes, err := k.schemas(v)
	for _, node := range nodes {
		n.always = append(n.always, &schemaRef{node: node})
		n.inPlace = append(n.inPlace, func(c *checker, at int, ev *evaluated) (int, bool) { return c.check(node, at, ev) })
	}
	return err
}

func anyOfKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	nodes, err := k.schemas(v)
	n.inPlace = append(n.inPlace, func(c *checker, at int, ev *evaluated) (end int, ok bool) {
		for _, node := range nodes {
			if e, fits := c.try(node, at, ev); fits {
				if end, ok = e, true; ev == nil {
					break
				}
			}
		}
		return end, ok || c.failAll(at, nodes)
	})
	return err
}

func oneOfKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	nodes, err := k.schemas(v)
	n.inPlace = append(n.inPlace, func(c *checker, at int, ev *evaluated) (end int, ok bool) {
		for _, node := range nodes {
			e, fits := c.try(node, at, ev)
			if fits && ok {
				return 0, c.fail(at, "must fit exactly one of the alternatives, but fits several (oneOf)")
			}
			if fits {
				end, ok = e, true
			}
		}
		return end, ok || c.failAll(at, nodes)
	})
	return err
}

func notKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	node := k.node(v.schemaPlace)
	n.inPlace = append(n.inPlace, func(c *checker, at int, _ *evaluated) (int, bool) {
		if _, fits := c.try(node, at, nil); fits {
			return 0, c.fail(at, "must not be what the schema excludes (not)")
		}
		return 0, true
	})
	return nil
}

func conditionKeyword(k *schemaCompiler, n *schemaNode, v keywordValue) error {
	if n.cond == nil {
		n.cond = new(condition)
	}
	node := k.node(v.schemaPlace)
	switch v.key {
	case "then":
		n.cond.then = node
	case "else":
		n.cond.otherwise = node
	case "if":
		n.cond.test = node
		n.inPlace = append(n.inPlace, func(c *checker, at int, ev *evaluated) (int, bool) {
			end, fits := c.try(node, at, ev)
			branch := n.cond.then
			if !fits {
				branch, end = n.cond.otherwise, 0
			}
			if branch == nil {
				return end, true
			}
			return c.check(branch, at, ev)
		})
	}
	return nil
}

// ---- Validation ---------------------------------------------------------

// Validate checks one JSON text against the schema. The error lists up to ten
// problems, each as a JSON pointer into the text and what is wrong there:
//
//	/age: must be at least 0; /name: is required; /nickname: is not a known property
//
// Text that is not JSON, a member that is given twice in an object that the
// schema describes, and a text that takes too much work to check are errors as
// well. Numbers are compared exactly, and 1.0 is an integer.
func (v *Schema) Validate(doc []byte) error {
	c := checkers.Get().(*checker)
	c.schema, c.s = v, scanner{data: doc}
	c.work = checkWork + checkWorkByte*len(doc)
	c.s.peek()
	at := c.s.pos
	end, ok := c.check(v.root, at, nil)
	if end == 0 && c.s.err == nil {
		end = c.end(at)
	}
	if c.s.err == nil {
		c.s.pos = end
		c.s.end()
	}
	err := c.result(ok)
	c.reset()
	checkers.Put(c)
	return err
}

var checkers = sync.Pool{New: func() any { return new(checker) }}

// A checker checks one text. It reads a value again for each schema that
// applies to it, and remembers nothing of it but offsets.
type checker struct {
	schema     *Schema
	s          scanner // its error ends everything
	aborted    error   // set when s.err is not about the text
	work       int     // steps left
	depth      int
	quiet      bool // only whether a value fits is asked
	problems   []problem
	explaining int               // how many calls of failAll are under way
	scope      []*schemaResource // entered on the way here, for $dynamicRef
	names      nameSet
	buf        []byte
}

// A problem is one thing wrong with the text.
type problem struct {
	at      int
	name    string // of a member that is not there
	message string
	byType  bool // what was asked for is another type,
	byConst bool // or another constant
}

func (c *checker) reset() {
	clear(c.scope)
	*c = checker{problems: c.problems[:0], scope: c.scope[:0], names: c.names, buf: c.buf[:0]}
	if len(c.names.slots) > 1024 || cap(c.buf) > 1<<16 { // not worth keeping
		c.names, c.buf = nameSet{}, nil
	}
	if len(c.names.names) > 0 {
		clear(c.names.slots)
		c.names.names = c.names.names[:0]
	}
}

// result makes the error of a check.
func (c *checker) result(ok bool) error {
	switch {
	case c.aborted != nil:
		return c.aborted
	case c.s.err != nil:
		return fmt.Errorf("is not JSON: %w", c.s.err)
	case ok:
		return nil
	}
	var text strings.Builder
	for i, p := range c.problems {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(c.describe(p))
	}
	return errors.New(text.String())
}

func (c *checker) describe(p problem) string {
	path, isName := pathTo(c.s.data, p.at)
	if p.name != "" {
		path = appendPointer(path, p.name)
	}
	if isName {
		p.message = "its name " + p.message
	}
	if path == "" {
		return p.message
	}
	return path + ": " + p.message
}

// fail notes a problem with the value at an offset. It returns false.
func (c *checker) fail(at int, message string) bool {
	return c.failWith(problem{at: at, message: message})
}

func (c *checker) failWith(p problem) bool {
	if !c.quiet && c.s.err == nil {
		c.problems = append(c.problems, p)
		c.quiet = len(c.problems) >= maxProblems // enough: find the end fast
	}
	return false
}

// abort ends the check for a reason that no other alternative can mend.
func (c *checker) abort(err error) {
	if c.aborted == nil && c.s.err == nil {
		c.aborted, c.s.err = err, err
	}
}

func (c *checker) spend(steps int) {
	if c.work -= steps; c.work < 0 {
		c.abort(errors.New("takes too much work to check"))
	}
}

// end returns where the value at an offset ends.
func (c *checker) end(at int) int {
	c.s.pos = at
	c.s.skip()
	c.spend((c.s.pos - at) / 8)
	return c.s.pos
}

// check checks the value at an offset against n. It returns where the value
// ends, 0 if it did not find out. ev, if not nil, is told which members or
// items of the value were looked at.
func (c *checker) check(n *schemaNode, at int, ev *evaluated) (end int, ok bool) {
	if c.spend(1); c.s.err != nil {
		return 0, false
	}
	if c.depth >= maxCheckDepth {
		c.abort(errors.New("is nested too deep to check, or the schema refers to itself without end"))
		return 0, false
	}
	scope, depth := len(c.scope), c.s.depth
	if c.schema.dynamic && (scope == 0 || c.scope[scope-1] != n.resource) {
		c.scope = append(c.scope, n.resource)
	}
	c.depth++
	switch {
	case n.byType:
		end, ok = c.checkByType(n, at, ev)
		end = max(end, 0)
	case n.unevaluatedProperties != nil || n.unevaluatedItems != nil:
		end, ok = c.checkEvaluated(n, at, ev)
	default:
		end, ok = c.checkValue(n, at, ev)
	}
	c.depth--
	c.s.depth, c.scope = depth, c.scope[:scope]
	return end, ok && c.s.err == nil
}

func (c *checker) checkValue(n *schemaNode, at int, ev *evaluated) (end int, ok bool) {
	if n.never {
		return 0, c.fail(at, "is not allowed")
	}
	if end, ok = c.checkByType(n, at, ev); end < 0 || !ok && c.quiet {
		return max(end, 0), ok
	}
	if len(n.values) > 0 {
		if end == 0 {
			end = c.end(at)
		}
		if c.s.err == nil {
			ok = c.obey(n.values, at, c.s.data[at:end]) && ok
		}
	}
	for _, check := range n.inPlace {
		if !ok && c.quiet {
			return 0, false
		}
		e, fits := check(c, at, ev)
		if ok = ok && fits; end == 0 {
			end = e
		}
	}
	return end, ok
}

// checkByType checks what depends on the type of a value, which starts at at.
// end is -1 if that decides the matter.
func (c *checker) checkByType(n *schemaNode, at int, ev *evaluated) (end int, ok bool) {
	var is typeSet
	var text []byte
	var escaped bool
	var first byte
	if c.s.pos = at; at < len(c.s.data) {
		first = c.s.data[at]
	}
	switch first {
	case '{':
		is = objectType
	case '[':
		is = arrayType
	case '"':
		is = stringType
		text, escaped = c.s.str()
	case 'n':
		is = nullType
		c.s.literal("null")
	case 't', 'f':
		is = booleanType
		c.s.skip()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		is = numberType
		text = c.s.number()
	default:
		c.s.skip() // says what is wrong
	}
	if is != objectType && is != arrayType {
		if end = c.s.pos; c.s.err != nil {
			return -1, false
		}
		c.spend((end - at) / 8)
		switch {
		case is == nullType && n.null:
			return -1, true
		case is == numberType && n.types&(numberType|integerType) == integerType && isIntegral(text):
			is = integerType
		}
	}
	if n.types != 0 && n.types&is == 0 {
		if !c.quiet {
			got := is.String()
			c.failWith(problem{at: at, message: "must be " + n.types.String() + ", got " + got, byType: true})
		}
		return -1, false
	}
	switch {
	case is == objectType && n.object != nil:
		return c.checkObject(n.object, at, ev)
	case is == arrayType && n.array != nil:
		return c.checkArray(n.array, at, ev)
	case is == stringType && n.strings != nil:
		if escaped {
			text = unescape(text)
		}
		return end, c.obey(n.strings, at, text)
	case is >= numberType && n.numbers != nil:
		return end, c.obey(n.numbers, at, text)
	}
	return end, true
}

func (c *checker) obey(rules []valueRule, at int, text []byte) bool {
	ok := true
	for i := range rules {
		if c.spend(rules[i].cost * len(text) / 8); !rules[i].holds(text) {
			ok = c.failWith(problem{at: at, message: rules[i].message, byConst: rules[i].isConst})
		}
	}
	return ok
}

func (c *checker) obeyCounts(rules []countRule, at, count int) bool {
	ok := true
	for i := range rules {
		if !rules[i].holds(count) {
			ok = c.fail(at, rules[i].message)
		}
	}
	return ok
}

// try reports whether the value fits, without a word if it does not.
func (c *checker) try(n *schemaNode, at int, ev *evaluated) (end int, ok bool) {
	var own *evaluated
	if ev != nil {
		own = new(evaluated)
	}
	quiet := c.quiet
	c.quiet = true
	end, ok = c.check(n, at, own)
	c.quiet = quiet
	if ok {
		ev.merge(own)
	}
	return end, ok
}

// failAll says why a value fits none of several schemas. If all but one are for
// values of another type, or ask for another constant, it is what is wrong by
// that one.
func (c *checker) failAll(at int, nodes []*schemaNode) bool {
	if c.quiet || c.s.err != nil {
		return false
	}
	if c.explaining == 2 { // explanations of explanations help nobody, and multiply
		return c.fail(at, "must fit one of the alternatives")
	}
	c.explaining++
	before := c.problems
	var reasons []string
	var near [][]problem
	for _, n := range nodes[:min(len(nodes), maxProblems)] {
		c.problems, c.quiet = nil, false
		c.check(n, at, nil)
		if len(c.problems) == 0 {
			continue
		}
		if !slices.ContainsFunc(c.problems, func(p problem) bool { return p.byConst || p.byType && p.at == at }) {
			near = append(near, c.problems)
		}
		reasons = append(reasons, c.describe(c.problems[0]))
	}
	c.problems, c.quiet = before, false
	c.explaining--
	if len(near) == 1 {
		for _, p := range near[0] {
			c.failWith(p)
		}
		return false
	}
	message := appendShort([]byte("must fit one of the alternatives: "), []byte(strings.Join(reasons, ", or ")), 600)
	return c.fail(at, string(message))
}

// target returns the schema of a reference, which for $dynamicRef is the one
// of its anchor in the outermost resource on the way here that has it.
func (c *checker) target(ref *schemaRef) *schemaNode {
	if ref.anchor != "" {
		for _, r := range c.scope {
			if n := r.dynamic[ref.anchor]; n != nil {
				return n
			}
		}
	}
	return ref.node
}

// checkObject walks over the members of an object once.
func (c *checker) checkObject(o *objectRules, at int, ev *evaluated) (end int, ok bool) {
	var small [4]uint64
	seen := bitSet(small[:])
	if len(o.properties) > 64*len(small) {
		seen = make(bitSet, len(o.properties)/64+1)
	}
	s := &c.s
	count, next := 0, 0
	ok = true
	s.open('{')
	for ; s.more('}', count); count++ {
		s.peek()
		nameAt := s.pos
		name := s.key()
		s.peek()
		c.spend(1 + (1+len(o.patterns))*len(name)/8)
		slot := o.find(name, next)
		twice := false
		if slot < 0 {
			twice = s.err == nil && !c.isFirst(at, nameAt, name)
		} else {
			twice, next = seen.has(slot), slot+1
			seen.set(slot)
		}
		if twice {
			path, _ := pathTo(s.data, s.pos)
			c.abort(fmt.Errorf("%s: is given twice", path))
		}
		valueAt := s.pos
		known, memberEnd, fits := c.checkMember(o, slot, nameAt, name, valueAt)
		if ok = ok && fits; !ok && c.quiet {
			return 0, false
		}
		if known {
			ev.set(count)
		}
		if s.pos = memberEnd; memberEnd == 0 {
			c.end(valueAt)
		}
	}
	if s.err != nil {
		return 0, false
	}
	end = s.pos
	for _, slot := range o.required {
		if !seen.has(slot) {
			ok = c.failWith(problem{at: at, name: o.properties[slot].name, message: "is required"})
		}
	}
	ok = c.obeyCounts(o.counts, at, count) && ok
	for i := range o.dependent {
		if d := &o.dependent[i]; seen.has(d.ifHas) && (ok || !c.quiet) {
			ok = c.checkDependency(o, d, at, seen, ev) && ok
		}
	}
	return end, ok
}

// find returns the slot of a name, -1 if it has none. Members often come in
// the order of the schema, so next is looked at first.
func (o *objectRules) find(name []byte, next int) int {
	if next < len(o.properties) && o.properties[next].name == string(name) {
		return next
	}
	if i, ok := o.index[string(name)]; ok {
		return i
	}
	return -1
}

// checkMember checks one member. known is false if no keyword is about it.
func (c *checker) checkMember(o *objectRules, slot, nameAt int, name []byte, at int) (known bool, end int, ok bool) {
	ok = true
	apply := func(n *schemaNode) {
		e, fits := c.check(n, at, nil)
		known, ok = true, ok && fits
		end = max(end, e)
	}
	if slot >= 0 && o.properties[slot].node != nil {
		if o.patterns == nil && o.names == nil { // as mostly
			end, ok = c.check(o.properties[slot].node, at, nil)
			return true, end, ok
		}
		apply(o.properties[slot].node)
	}
	for i := range o.patterns {
		if o.patterns[i].pattern.Match(name) {
			apply(o.patterns[i].node)
		}
	}
	switch {
	case known || o.additional == nil:
	case o.additional.never:
		known, ok = true, c.fail(at, "is not a known property")
	default:
		apply(o.additional)
	}
	if o.names != nil {
		_, fits := c.check(o.names, nameAt, nil)
		ok = ok && fits
	}
	return known, end, ok
}

func (c *checker) checkDependency(o *objectRules, d *dependency, at int, seen bitSet, ev *evaluated) bool {
	ok := true
	for _, slot := range d.required {
		if !seen.has(slot) {
			message := "is required beside " + o.properties[d.ifHas].name
			ok = c.failWith(problem{at: at, name: o.properties[slot].name, message: message})
		}
	}
	if d.node != nil {
		_, fits := c.check(d.node, at, ev)
		ok = ok && fits
	}
	return ok
}

// checkArray walks over the items of an array once, and once more if they
// must be unique.
func (c *checker) checkArray(a *arrayRules, at int, ev *evaluated) (end int, ok bool) {
	s := &c.s
	count, contained := 0, 0
	ok = true
	s.open('[')
	for ; s.more(']', count); count++ {
		c.spend(1)
		s.peek()
		itemAt, itemEnd := s.pos, 0
		node := a.items
		if count < len(a.prefix) {
			node = a.prefix[count]
		}
		if node != nil {
			var fits bool
			itemEnd, fits = c.check(node, itemAt, nil)
			if ok = ok && fits; !ok && c.quiet {
				return 0, false
			}
			ev.set(count)
		}
		if a.contains != nil {
			if e, fits := c.try(a.contains, itemAt, nil); fits {
				contained++
				ev.set(count)
				itemEnd = max(itemEnd, e)
			}
		}
		if s.pos = itemEnd; itemEnd == 0 {
			c.end(itemAt)
		}
	}
	if s.err != nil {
		return 0, false
	}
	end = s.pos
	ok = c.obeyCounts(a.counts, at, count) && ok
	if a.contains != nil && contained < a.minContains {
		ok = c.fail(at, "must have at least "+plural(a.minContains, "item")+" of the kind asked for (contains)")
	}
	if a.contains != nil && a.maxContains >= 0 && contained > a.maxContains {
		ok = c.fail(at, "must have at most "+plural(a.maxContains, "item")+" of the kind asked for (contains)")
	}
	if a.unique && count > 1 && (ok || !c.quiet) {
		ok = c.checkUnique(at) && ok
	}
	return end, ok
}

// checkUnique compares the items of the array at an offset with each other.
func (c *checker) checkUnique(at int) bool {
	s := scanner{data: c.s.data, pos: at, depth: maxDepth - maxCompareDepth}
	var few [16]int // where the first items end in buf
	var many map[string]bool
	buf := c.buf[:0]
	s.open('[')
	for n := 0; s.more(']', n); n++ {
		s.peek()
		itemAt, from := s.pos, len(buf)
		buf = appendCanonical(buf, &s)
		if c.spend(1 + (s.pos-itemAt)/8); s.err != nil || c.s.err != nil {
			c.abort(errors.New("is nested too deep to tell whether its items are unique"))
			return false
		}
		item, twice := buf[from:], false
		if n < len(few) {
			for i, start := 0, 0; i < n; i++ {
				twice = twice || bytes.Equal(buf[start:few[i]], item)
				start = few[i]
			}
			few[n] = len(buf)
		} else {
			if many == nil {
				many = make(map[string]bool)
				for i, start := 0, 0; i < n; i++ {
					many[string(buf[start:few[i]])] = true
					start = few[i]
				}
			}
			twice = many[string(item)]
			many[string(item)] = true
			buf = buf[:from]
		}
		if twice {
			return c.fail(itemAt, "is a duplicate; the items must be unique")
		}
	}
	c.buf = buf
	return true
}

// checkEvaluated checks a schema with unevaluatedProperties or
// unevaluatedItems: these apply to what all others have not looked at.
func (c *checker) checkEvaluated(n *schemaNode, at int, ev *evaluated) (end int, ok bool) {
	own := new(evaluated)
	if end, ok = c.checkValue(n, at, own); !ok && c.quiet || c.s.err != nil {
		return 0, false
	}
	s := &c.s
	s.pos = at
	rest, closing := n.unevaluatedProperties, byte('}')
	opening := s.peek()
	if opening == '[' {
		rest, closing = n.unevaluatedItems, ']'
	}
	if rest != nil && (opening == '{' || opening == '[') {
		s.open(opening)
		for i := 0; s.more(closing, i); i++ {
			if opening == '{' {
				s.key()
			}
			s.peek()
			itemAt := s.pos
			switch {
			case own.has(i):
			case rest.never && opening == '{':
				ok = c.fail(itemAt, "is not a known property")
			default:
				_, fits := c.check(rest, itemAt, nil)
				ok = ok && fits
			}
			own.set(i)
			c.end(itemAt)
		}
		end = s.pos
	}
	ev.merge(own)
	return end, ok
}

// A bitSet is a set of small numbers.
type bitSet []uint64

func (b bitSet) has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }
func (b bitSet) set(i int)      { b[i>>6] |= 1 << (i & 63) }

// evaluated is the set of members or items of one value that a keyword looked
// at, by position. A nil set takes no notes.
type evaluated struct{ bits bitSet }

func (e *evaluated) has(i int) bool { return e.bits.has(i) }

func (e *evaluated) set(i int) {
	if e == nil {
		return
	}
	for i>>6 >= len(e.bits) {
		e.bits = append(e.bits, 0)
	}
	e.bits.set(i)
}

func (e *evaluated) merge(o *evaluated) {
	if e == nil || o == nil {
		return
	}
	for i, word := range o.bits {
		if i == len(e.bits) {
			e.bits = append(e.bits, 0)
		}
		e.bits[i] |= word
	}
}

// A nameSet is where the members are whose names no keyword knows. It is a
// table with open addressing, since an object may have very many of them.
type nameSet struct {
	names []memberName // in the order they came
	slots []uint32     // places in names, counted from 1; 0 if free. A power of two, at most half in use
}

// A memberName is where a member's name is, by the hash of it and of where its
// object is.
type memberName struct {
	hash uint64
	at   int
}

var nameSeed = maphash.MakeSeed()

// isFirst notes a member of an object whose name no keyword knows. It returns
// false if there is another one of that name.
func (c *checker) isFirst(object, at int, name []byte) bool {
	set := &c.names
	if 2*len(set.names) >= len(set.slots) {
		set.slots = make([]uint32, max(16, 4*len(set.slots)))
		set.names = slices.Grow(set.names, len(set.slots)/2-len(set.names))
		for i := range set.names {
			*set.slot(set.names[i].hash) = uint32(i + 1)
		}
	}
	hash := maphash.Bytes(nameSeed, name) ^ uint64(object)*0x9E3779B97F4A7C15 // spreads neighbours
	slot := set.slot(hash)
	if *slot != 0 {
		return set.names[*slot-1].at == at // if the object is walked over once more
	}
	set.names = append(set.names, memberName{hash, at})
	*slot = uint32(len(set.names))
	return true
}

// slot returns the slot of a hash, or the one where it belongs.
func (set *nameSet) slot(hash uint64) *uint32 {
	last := uint64(len(set.slots) - 1)
	for i := hash & last; ; i = (i + 1) & last {
		if n := set.slots[i]; n == 0 || set.names[n-1].hash == hash {
			return &set.slots[i]
		}
	}
}

// pathTo returns the JSON pointer to the value at an offset. isName is true
// if the offset is that of a member's name.
func pathTo(data []byte, at int) (path string, isName bool) {
	type step struct {
		object, naming bool
		name           []byte
		index          int
	}
	var open []step
	s := scanner{data: data}
	for s.peek(); s.err == nil && s.pos <= at && s.pos < len(data); s.peek() {
		var top *step
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		c := data[s.pos]
		switch {
		case c == '"' && top != nil && top.naming:
			isName = s.pos == at
			top.name, top.naming = s.key(), false
			continue
		case c == ',' && top != nil:
			top.index++
			top.naming = top.object
			s.pos++
			continue
		}
		if s.pos == at {
			break
		}
		switch c {
		case '{', '[':
			s.pos++
			open = append(open, step{object: c == '{', naming: c == '{'})
		case '}', ']':
			s.pos++
			open = open[:max(len(open)-1, 0)]
		default:
			s.skip()
		}
	}
	for _, step := range open {
		if step.object {
			path = appendPointer(path, string(step.name))
		} else {
			path += "/" + strconv.Itoa(step.index)
		}
	}
	return path, isName
}

func appendPointer(path, name string) string {
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	return path + "/" + string(appendShort(nil, []byte(name), 100))
}

// ---- Numbers and equality -----------------------------------------------

// A decimal is the number ±0.digits × 10^exp, where digits neither begin nor
// end with 0. No digits are the number 0.
type decimal struct {
	neg    bool
	digits []byte
	exp    int
}

// maxExponent is what exponents beyond it are taken for.
const maxExponent = 1 << 29

// parseDecimal reads a JSON number. The digits are appended to buf.
func parseDecimal(buf, raw []byte) decimal {
	d := decimal{neg: len(raw) > 0 && raw[0] == '-', digits: buf[:0]}
	point := -1
	for i, c := range raw {
		switch {
		case '0' <= c && c <= '9':
			d.digits = append(d.digits, c)
			continue
		case c == '.':
			point = len(d.digits)
			continue
		case c != 'e' && c != 'E':
			continue // the sign
		}
		exp, err := strconv.Atoi(string(raw[i+1:]))
		if err != nil || exp > maxExponent || exp < -maxExponent {
			if exp = maxExponent; raw[i+1] == '-' {
				exp = -maxExponent
			}
		}
		d.exp = exp
		break
	}
	if point < 0 {
		point = len(d.digits)
	}
	d.exp += point
	for len(d.digits) > 0 && d.digits[0] == '0' {
		d.digits = d.digits[1:]
		d.exp--
	}
	d.digits = bytes.TrimRight(d.digits, "0")
	if len(d.digits) == 0 {
		return decimal{}
	}
	return d
}

// A number is a decimal of a schema, and its value if it is a small integer.
type number struct {
	decimal
	small   int64
	isSmall bool
}

func newNumber(raw []byte) number {
	n := number{decimal: parseDecimal(nil, raw)}
	n.small, n.isSmall = smallInteger(raw)
	return n
}

// smallInteger reads an integer of up to 18 characters.
func smallInteger(raw []byte) (n int64, ok bool) {
	digits := raw
	if len(raw) > 0 && raw[0] == '-' {
		digits = raw[1:]
	}
	if len(raw) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	return n, true
}

// compareNumber is negative, 0 or positive as the JSON number raw is less
// than, equal to or greater than n.
func compareNumber(raw []byte, n *number) int {
	if small, ok := smallInteger(raw); ok && n.isSmall {
		return cmp.Compare(small, n.small)
	}
	var buf [64]byte
	d := parseDecimal(buf[:0], raw)
	sign := func(d decimal) int {
		switch {
		case len(d.digits) == 0:
			return 0
		case d.neg:
			return -1
		}
		return 1
	}
	s := sign(d)
	if s != sign(n.decimal) || s == 0 {
		return s - sign(n.decimal)
	}
	return s * cmp.Or(cmp.Compare(d.exp, n.exp), bytes.Compare(d.digits, n.digits))
}

// plainInteger returns a JSON number that is an integer as Go reads it: 1.0 as
// 1 and 1e2 as 100. It returns others, and those of more than max digits, as
// they are.
func plainInteger(raw []byte, max int) []byte {
	if isInteger(raw) {
		return raw
	}
	d := parseDecimal(nil, raw)
	if len(d.digits) > d.exp || d.exp > max {
		return raw
	}
	plain := make([]byte, 0, d.exp+1)
	if d.neg {
		plain = append(plain, '-')
	}
	plain = append(plain, d.digits...)
	plain = append(plain, bytes.Repeat([]byte{'0'}, d.exp-len(d.digits))...)
	if len(plain) == 0 {
		plain = append(plain, '0')
	}
	return plain
}

// isIntegral reports whether a JSON number has no fraction: 1.0 and 1e2 have
// none.
func isIntegral(raw []byte) bool {
	if isInteger(raw) {
		return true
	}
	d := parseDecimal(nil, raw)
	return d.exp >= len(d.digits)
}

// isMultiple reports whether a JSON number is a multiple of n, exactly. One of
// more than ten thousand digits is not.
func isMultiple(raw []byte, n *number) bool {
	if small, ok := smallInteger(raw); ok && n.isSmall {
		return small%n.small == 0
	}
	d := parseDecimal(nil, raw)
	if len(d.digits) == 0 || len(d.digits) > 10000 {
		return len(d.digits) == 0
	}
	value, _ := new(big.Int).SetString(string(d.digits), 10)
	divisor, _ := new(big.Int).SetString(string(n.digits), 10)
	ten := big.NewInt(10)
	// value × 10^shift must be a multiple of divisor.
	shift := (d.exp - len(d.digits)) - (n.exp - len(n.digits))
	if shift >= 0 {
		power := new(big.Int).Exp(ten, big.NewInt(int64(shift)), divisor)
		value.Mul(value, power)
	} else {
		if -shift > len(d.digits) {
			return false
		}
		divisor.Mul(divisor, new(big.Int).Exp(ten, big.NewInt(int64(-shift)), nil))
	}
	return value.Mod(value, divisor).Sign() == 0
}

// A constant is a value of enum or const.
type constant struct{ raw, canonical []byte }

func newConstant(raw []byte) constant {
	s := scanner{data: raw}
	return constant{raw, appendCanonical(nil, &s)}
}

// equals reports whether the JSON value text is equal to c.
func (c constant) equals(text []byte) bool {
	if bytes.Equal(text, c.raw) {
		return true
	}
	switch kind := jsonTypeOf(text[0]); {
	case kind != jsonTypeOf(c.raw[0]) || kind == "boolean" || kind == "null":
		return false
	case kind == "string" && isPlain(text):
		return bytes.Equal(text, c.canonical)
	}
	var buf [64]byte
	s := scanner{data: text, depth: maxDepth - maxCompareDepth}
	canonical := appendCanonical(buf[:0], &s)
	return s.err == nil && bytes.Equal(canonical, c.canonical)
}

// isPlain reports whether appendString would write the text as it is.
func isPlain(text []byte) bool {
	return bytes.IndexByte(text, '\\') < 0 && bytes.IndexByte(text, 0xE2) < 0
}

// appendCanonical appends the value that s is at, so that equal values are
// equal bytes: members sorted, numbers and strings written in one way.
func appendCanonical(dst []byte, s *scanner) []byte {
	switch c := s.peek(); c {
	case '{':
		return appendCanonicalObject(dst, s)
	case '[':
		dst = append(dst, '[')
		s.open('[')
		for n := 0; s.more(']', n); n++ {
			dst = append(appendCanonical(dst, s), ',')
		}
		return append(dst, ']')
	case '"':
		text := s.skip()
		if isPlain(text) {
			return append(dst, text...)
		}
		decoded, _ := stringValue(text)
		return appendString(dst, decoded)
	case 't', 'f', 'n':
		return append(dst, s.skip()...)
	}
	var buf [64]byte
	d := parseDecimal(buf[:0], s.skip())
	if d.neg {
		dst = append(dst, '-')
	}
	dst = append(append(dst, d.digits...), 'e')
	return strconv.AppendInt(dst, int64(d.exp), 10)
}

func appendCanonicalObject(dst []byte, s *scanner) []byte {
	type member struct{ name, text []byte }
	var members []member
	s.open('{')
	for n := 0; s.more('}', n); n++ {
		name := appendString(nil, string(s.key()))
		members = append(members, member{name, appendCanonical(nil, s)})
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for _, m := range members {
		dst = append(append(append(append(dst, m.name...), ':'), m.text...), ',')
	}
	return append(dst, '}')
}

// ---- Patterns -----------------------------------------------------------

// pattern compiles an ECMA-262 regular expression (2020-12 core § 6.4).
func (k *schemaCompiler) pattern(text string) (*regexp.Regexp, error) {
	if p := k.patterns[text]; p != nil {
		return p, nil
	}
	if len(k.patterns) >= maxPatterns || len(text) > maxPatternLen {
		return nil, fmt.Errorf("more than %d patterns, or one of more than %d bytes", maxPatterns, maxPatternLen)
	}
	p, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	if k.patterns == nil {
		k.patterns = map[string]*regexp.Regexp{}
	}
	k.patterns[text] = p
	return p, nil
}

func compilePattern(text string) (*regexp.Regexp, error) {
	translated, err := translatePattern(text)
	if err == nil {
		var p *regexp.Regexp
		if p, err = regexp.Compile(translated); err == nil {
			return p, nil
		}
	}
	reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	return nil, fmt.Errorf("the pattern %.100q cannot be used: %s", text, reason)
}

const ecmaSpace = `\t-\r\x{2028}\x{2029}\x{FEFF}\p{Zs}`

// translatePattern turns an ECMA-262 pattern into one that means the same to
// package regexp. What that does not know it is left to refuse.
func translatePattern(p string) (string, error) {
	var out strings.Builder
	inClass := false
	for i := 0; i < len(p); {
		switch c := p[i]; {
		case c == '\\':
			text, n, err := translateEscape(p[i:], inClass)
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			i += n
			continue
		case c == '[' && inClass:
			out.WriteString(`\[`)
		case strings.HasPrefix(p[i:], "[]") && !inClass:
			out.WriteString(`[^\x00-\x{10FFFF}]`)
			i++
		case strings.HasPrefix(p[i:], "[^]") && !inClass:
			out.WriteString(`[\x00-\x{10FFFF}]`)
			i += 2
		case c == '.' && !inClass:
			out.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		default:
			inClass = c == '[' || inClass && c != ']'
			out.WriteByte(c)
		}
		i++
	}
	return out.String(), nil
}

// translateEscape translates the escape that p begins with, n bytes of it.
func translateEscape(p string, inClass bool) (text string, n int, err error) {
	if len(p) < 2 {
		return p, len(p), nil
	}
	switch c := p[1]; c {
	case 's':
		if inClass {
			return ecmaSpace, 2, nil
		}
		return "[" + ecmaSpace + "]", 2, nil
	case 'S':
		if inClass { // what is left out is only white space that is not ASCII
			return `\S`, 2, nil
		}
		return "[^" + ecmaSpace + "]", 2, nil
	case 'c':
		if len(p) > 2 && 'a' <= p[2]|0x20 && p[2]|0x20 <= 'z' {
			return fmt.Sprintf(`\x%02x`, p[2]&0x1F), 3, nil
		}
	case '0':
		return `\x00`, 2, nil
	case 'b':
		if inClass {
			return `\x08`, 2, nil
		}
		return `\b`, 2, nil
	case 'u':
		if r, n := unicodeEscape(p); n > 0 {
			if utf16.IsSurrogate(r) {
				low, m := unicodeEscape(p[n:])
				r, n = utf16.DecodeRune(r, low), n+m
			}
			return fmt.Sprintf(`\x{%x}`, r), n, nil
		}
	case 'p', 'P':
		for _, prefix := range []string{"{Script=", "{sc=", "{General_Category=", "{gc="} {
			if rest, ok := strings.CutPrefix(p[2:], prefix); ok {
				return p[:2] + "{", len(p) - len(rest), nil
			}
		}
		return p[:2], 2, nil
	case 'a', 'A', 'C', 'E', 'Q', 'z', 'Z': // not in ECMA-262, where most letters are not escapes
	default:
		return p[:2], 2, nil
	}
	return "", 0, fmt.Errorf("invalid escape `%.2s`", p)
}

// unicodeEscape reads \uXXXX or \u{X…} from the beginning of p.
func unicodeEscape(p string) (r rune, n int) {
	digits, n := "", 6
	if strings.HasPrefix(p, `\u{`) {
		if end := strings.IndexByte(p, '}'); end > 0 {
			digits, n = p[3:end], end+1
		}
	} else if strings.HasPrefix(p, `\u`) && len(p) >= 6 {
		digits = p[2:6]
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || v > unicode.MaxRune {
		return 0, 0
	}
	return rune(v), n
}

// ---- Formats ------------------------------------------------------------

// formats are the formats of 2020-12 and draft-07 (2020-12 validation § 7.3).
// regex is what compilePattern takes. For the host names of IDNA the tables of
// the package unicode stand in for its own: see idnaAllows.
var formats = map[string]func(string) bool{
	"date-time": func(s string) bool {
		return len(s) > 11 && isDate(s[:10]) && s[10]|0x20 == 't' && isTime(s[11:])
	},
	"date":                  isDate,
	"time":                  isTime,
	"duration":              matches(`P(\d+W|(\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)(T` + clock + `)?|T` + clock + `)`),
	"email":                 matchesHost(`(?:`+atom+`(?:\.`+atom+`)*|"(?:[ !#-\[\]-~]|\\[ -~])*")@(.+)`, isMailHost),
	"idn-email":             matchesHost(`(?:`+idnAtom+`(?:\.`+idnAtom+`)*|"(?:[ !#-\[\]-~[:^ascii:]]|\\[ -~])*")@(.+)`, isIDNMailHost),
	"hostname":              isHostname,
	"idn-hostname":          isIDNHostname,
	"ipv4":                  func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"ipv6":                  isIPv6,
	"uri":                   matchesHost(uriPattern(unreserved, ""), isIPLiteral),
	"uri-reference":         matchesHost(uriRefPattern(unreserved, ""), isIPLiteral),
	"iri":                   matchesHost(uriPattern(unreserved+ucschar, iprivate), isIPLiteral),
	"iri-reference":         matchesHost(uriRefPattern(unreserved+ucschar, iprivate), isIPLiteral),
	"uri-template":          matches("(?:[!#$&-;=?-\\[\\]_a-z~[:^ascii:]]|" + hexPair + `|\{[+#./;?&=,!@|]?` + varSpec + `(?:,` + varSpec + `)*\})*`),
	"json-pointer":          matches(`(/([^~/]|~[01])*)*`),
	"relative-json-pointer": matches(`(0|[1-9]\d*)([+-][1-9]\d*)?(#|(/([^~/]|~[01])*)*)`),
	"regex":                 func(s string) bool { _, err := compilePattern(s); return err == nil && !notECMA().MatchString(s) },
	"uuid":                  matches(`[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12}`),
}

const (
	clock      = `(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S)`
	atom       = "[\\w!#$%&'*+/=?^`{|}~-]+"
	idnAtom    = "[\\w!#$%&'*+/=?^`{|}~[:^ascii:]-]+"
	hexPair    = `%[\da-fA-F]{2}`
	varSpec    = `(?:\w|` + hexPair + `)(?:\.?(?:\w|` + hexPair + `))*(?::[1-9]\d{0,3}|\*)?`
	unreserved = `\w.~!$&'()*+,;=\-`
	iprivate   = `\x{E000}-\x{F8FF}\x{F0000}-\x{10FFFD}`
	ucschar    = `\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{EFFFD}`
)

// uriPattern is a URI of RFC 3986, or an IRI of RFC 3987: chars stand for
// themselves anywhere, private ones in a query. The group is an IP literal.
func uriPattern(chars, private string) string {
	authority, start, path, rest := uriParts(chars, private)
	return `[A-Za-z][A-Za-z\d+.-]*:(?://` + authority + path + `|/` + start + `+` + path + `|` + start + `+` + path + `|/?)` + rest
}

// uriRefPattern is the same for a reference.
func uriRefPattern(chars, private string) string {
	authority, start, path, rest := uriParts(chars, private)
	noColon := `(?:[` + chars + `@]|` + hexPair + `)+`
	return uriPattern(chars, private) + `|(?://` + authority + path + `|/` + start + `+` + path + `|` + noColon + path + `|/?)` + rest
}

func uriParts(chars, private string) (authority, start, path, rest string) {
	char := func(more string) string { return `(?:[` + chars + more + `]|` + hexPair + `)` }
	authority = `(?:` + char(":") + `*@)?(?:\[([^\]]*)\]|` + char("") + `*)(?::\d*)?`
	more := char(":@/?" + private)
	return authority, char(":@"), `(?:/` + char(":@") + `*)*`, `(?:\?` + more + `*)?(?:#` + char(":@/?") + `*)?`
}

var notECMA = lazy(`\(\?(P|[a-zA-Z]+\))`) // which regexp knows

// A lazyRegexp is compiled when it is first needed.
type lazyRegexp func() *regexp.Regexp

func lazy(expr string) lazyRegexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// matches returns a check of the whole text against an expression.
func matches(expr string) func(string) bool {
	re := lazy(`^(?:` + expr + `)$`)
	return func(s string) bool { return re().MatchString(s) }
}

// matchesHost also gives what the groups matched to a check of hosts.
func matchesHost(expr string, host func(string) bool) func(string) bool {
	re := lazy(`^(?:` + expr + `)$`)
	return func(s string) bool {
		groups := re().FindStringSubmatch(s)
		return groups != nil && !slices.ContainsFunc(groups[1:], func(g string) bool { return g != "" && !host(g) })
	}
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}

var timeParts = lazy(`^([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$`)

func isTime(s string) bool {
	p := timeParts().FindStringSubmatch(s)
	if p == nil || p[3] != "60" {
		return p != nil
	}
	minutes := func(hour, minute string) int {
		h, _ := strconv.Atoi(hour)
		m, _ := strconv.Atoi(minute)
		return 60*h + m
	}
	offset := minutes(p[5], p[6])
	if p[4] == "-" {
		offset = -offset
	}
	const day = 24 * 60
	return (minutes(p[1], p[2])-offset+day)%day == day-1 // leap seconds are at 23:59:60 UTC
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

var isIPFuture = matches(`[vV][\da-fA-F]+\.[` + unreserved + `:]+`)

func isIPLiteral(s string) bool { return isIPv6(s) || isIPFuture(s) }

// isHostname takes names of RFC 1123. A label that begins with xn-- must be the
// Punycode of one that IDNA allows (RFC 5890 § 2.3.2.1).
func isHostname(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 && isIDNHostname(s)
}

// isIDNHostname takes names with the letters of all scripts, too (RFC 5890 to
// 5893).
func isIDNHostname(s string) bool {
	if len(s) > 253*utf8.UTFMax {
		return false
	}
	const dots = "\u3002\uff0e\uff61"
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(dots, r) {
			return '.'
		}
		return r
	}, s)
	size, bidi := 0, false
	labels := strings.Split(s, ".")
	for i, label := range labels {
		u, encoded, ok := idnaLabel(label)
		if !ok {
			return false
		}
		labels[i] = u
		size += encoded + 1
		bidi = bidi || strings.ContainsFunc(u, func(r rune) bool { return strings.Contains("RA", bidiClass(r)) })
	}
	return size-1 <= 253 && !(bidi && slices.ContainsFunc(labels, func(u string) bool { return !obeysBidi(u) }))
}

func isMailHost(s string) bool {
	if literal, ok := strings.CutPrefix(s, "["); ok {
		literal, ok = strings.CutSuffix(literal, "]")
		if six, is6 := strings.CutPrefix(literal, "IPv6:"); is6 {
			return ok && isIPv6(six)
		}
		a, err := netip.ParseAddr(literal)
		return ok && err == nil && a.Is4()
	}
	return isHostname(s)
}

func isIDNMailHost(s string) bool { return isMailHost(s) || isIDNHostname(s) }

// ---- Internationalized host names ---------------------------------------

// idnaLabel checks a label of a host name. It returns what the label is in
// Unicode, and its length as it is in ASCII.
func idnaLabel(label string) (u string, size int, ok bool) {
	const prefix = "xn--"
	switch u = label; {
	case label == "" || len(label) > 63*utf8.UTFMax || label[0] == '-' || label[len(label)-1] == '-':
		return "", 0, false
	case len(label) > 4 && strings.EqualFold(label[:4], prefix):
		size = len(label)
		if u, ok = fromPunycode(strings.ToLower(label[4:])); !ok || toPunycode(u) != strings.ToLower(label[4:]) {
			return "", 0, false
		}
	case len(label) >= 4 && label[2:4] == "--":
		return "", 0, false
	}
	runes := []rune(u)
	if isPlainLabel(u) {
		return u, len(u), len(u) <= 63 && size == 0
	}
	if size == 0 {
		size = len(prefix) + len(toPunycode(u))
	}
	if size > 63 || unicode.IsMark(runes[0]) || runes[0] == '-' || runes[len(runes)-1] == '-' || len(runes) > 3 && runes[2] == '-' && runes[3] == '-' {
		return "", 0, false
	}
	for i := range runes {
		if !idnaAllows(runes, i) {
			return "", 0, false
		}
	}
	return u, size, true
}

// isPlainLabel reports whether a label has letters, digits and hyphens only.
func isPlainLabel(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r != '-' && !isLetterOrDigit(r) }) < 0
}

func isLetterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z' && r < utf8.RuneSelf
}

// Characters that RFC 5892 § 2.6 names, the blocks of § 2.9 and 2.10, and those
// of characters that NFKC replaces (§ 2.2).
const (
	idnaYes = "\u00df\u03c2\u06fd\u06fe\u0f0b\u3007"
	idnaNo  = "\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b"
)

var idnaNoBlocks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xaa, 0xba, 0x10}, {0x2b0, 0x2b8, 1}, {0x2e0, 0x2e4, 1}, {0x1100, 0x11ff, 1}, {0x20d0, 0x20ff, 1}, {0xa960, 0xa97f, 1}, {0xd7b0, 0xd7ff, 1},
		{0xf900, 0xfa0d, 1}, {0xfa2a, 0xfaff, 1}, {0xfb00, 0xfdff, 1}, {0xfe70, 0xfeff, 1}, {0xff00, 0xffef, 1},
	},
	R32: []unicode.Range32{{0x1d100, 0x1d1ff, 1}, {0x1d200, 0x1d24f, 1}, {0x1d400, 0x1d7ff, 1}, {0x1ee00, 0x1eeff, 1}, {0x2f800, 0x2fa1f, 1}},
}

// idnaAllows reports whether a label may have the character label[i]
// (RFC 5892). Which characters are unstable under NFKC is known here by blocks
// only, and by their having another case.
func idnaAllows(label []rune, i int) bool {
	before, after := rune(-1), rune(-1)
	if i > 0 {
		before = label[i-1]
	}
	if i+1 < len(label) {
		after = label[i+1]
	}
	has := func(tables ...*unicode.RangeTable) bool {
		return slices.ContainsFunc(label, func(r rune) bool { return unicode.In(r, tables...) })
	}
	switch r := label[i]; {
	case isLetterOrDigit(r) || r == '-' || strings.ContainsRune(idnaYes, r):
		return true
	case r == '\u200c':
		return unicode.Is(viramas, before) || joins(label[:i], label[i+1:])
	case r == '\u200d':
		return unicode.Is(viramas, before)
	case r == '\u00b7':
		return before == 'l' && after == 'l'
	case r == '\u0375':
		return unicode.Is(unicode.Greek, after)
	case r == '\u05f3' || r == '\u05f4':
		return unicode.Is(unicode.Hebrew, before)
	case r == '\u30fb':
		return has(unicode.Hiragana, unicode.Katakana, unicode.Han)
	case '\u0660' <= r && r <= '\u0669':
		return !slices.ContainsFunc(label, func(r rune) bool { return '\u06f0' <= r && r <= '\u06f9' })
	case strings.ContainsRune(idnaNo, r), unicode.Is(idnaNoBlocks, r),
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), unicode.ToLower(r) != r:
		return false
	default:
		return unicode.In(r, unicode.Ll, unicode.Lo, unicode.Lm, unicode.Mn, unicode.Mc, unicode.Nd)
	}
}

// viramas have the canonical combining class 9.
var viramas = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x94d, 0x9cd, 0x80}, {0xa4d, 0xacd, 0x80}, {0xb4d, 0xbcd, 0x80}, {0xc4d, 0xccd, 0x80}, {0xd3b, 0xd3c, 1}, {0xd4d, 0xd4d, 1},
		{0xdca, 0xdca, 1}, {0xe3a, 0xeba, 0x80}, {0xf84, 0xf84, 1}, {0x1039, 0x103a, 1}, {0x1714, 0x1715, 1}, {0x1734, 0x1734, 1},
		{0x17d2, 0x17d2, 1}, {0x1a60, 0x1a60, 1}, {0x1b44, 0x1b44, 1}, {0x1baa, 0x1bab, 1}, {0x1bf2, 0x1bf3, 1}, {0x2d7f, 0x2d7f, 1},
		{0xa806, 0xa806, 1}, {0xa82c, 0xa82c, 1}, {0xa8c4, 0xa8c4, 1}, {0xa953, 0xa953, 1}, {0xa9c0, 0xa9c0, 1}, {0xaaf6, 0xaaf6, 1}, {0xabed, 0xabed, 1},
	},
	R32: []unicode.Range32{
		{0x10a3f, 0x10a3f, 1}, {0x11046, 0x11046, 1}, {0x1107f, 0x1107f, 1}, {0x110b9, 0x110b9, 1}, {0x11133, 0x11134, 1}, {0x111c0, 0x111c0, 1},
		{0x11235, 0x11235, 1}, {0x112ea, 0x112ea, 1}, {0x1134d, 0x1134d, 1}, {0x11442, 0x11442, 1}, {0x114c2, 0x114c2, 1}, {0x115bf, 0x115bf, 1},
		{0x1163f, 0x1163f, 1}, {0x116b6, 0x116b6, 1}, {0x1172b, 0x1172b, 1}, {0x11839, 0x11839, 1}, {0x119e0, 0x119e0, 1}, {0x11a34, 0x11a34, 1},
		{0x11a47, 0x11a47, 1}, {0x11a99, 0x11a99, 1}, {0x11c3f, 0x11c3f, 1}, {0x11d44, 0x11d45, 1}, {0x11d97, 0x11d97, 1},
	},
}

// joins reports whether letters of a script that joins them stand around a
// zero width non-joiner (RFC 5892 appendix A.1). Of the joining types only
// those of Arabic letters that do not join what follows are known here.
func joins(before, after []rune) bool {
	const rightOnly = "\u0622\u0623\u0624\u0625\u0627\u0629\u062f\u0630\u0631\u0632\u0648\u0649"
	letter := func(r rune) bool {
		return unicode.IsLetter(r) && unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Phags_Pa, unicode.Mandaic, unicode.Manichaean, unicode.Adlam)
	}
	for len(before) > 0 && unicode.Is(unicode.Mn, before[len(before)-1]) {
		before = before[:len(before)-1]
	}
	for len(after) > 0 && unicode.Is(unicode.Mn, after[0]) {
		after = after[1:]
	}
	return len(before) > 0 && letter(before[len(before)-1]) && !strings.ContainsRune(rightOnly, before[len(before)-1]) &&
		len(after) > 0 && letter(after[0])
}

// bidiClass returns what RFC 5893 asks of a character that IDNA allows: "R"
// for R and AL, "A" for AN, "E" for EN, "M" for NSM, "N" for the neutral ones,
// "L" for the rest.
func bidiClass(r rune) string {
	switch {
	case '0' <= r && r <= '9' || '\u06f0' <= r && r <= '\u06f9':
		return "E"
	case '\u0660' <= r && r <= '\u0669':
		return "A"
	case unicode.Is(unicode.Mn, r):
		return "M"
	case r == '-' || r == '\u00b7' || r == '\u0375' || r == '\u30fb' || r == '\u200c' || r == '\u200d':
		return "N"
	case r >= 0x590 && r <= 0x8ff, r >= 0xfb1d && r <= 0xfdff, r >= 0xfe70 && r <= 0xfeff, r >= 0x10800 && r <= 0x10fff, r >= 0x1e800 && r <= 0x1efff:
		return "R"
	}
	return "L"
}

// obeysBidi checks a label of a name that has one written from right to left
// (RFC 5893 § 2).
func obeysBidi(label string) bool {
	var classes strings.Builder
	for _, r := range label {
		classes.WriteString(bidiClass(r))
	}
	c := classes.String()
	end := strings.TrimRight(c, "M")
	switch {
	case end == "":
		return false
	case c[0] == 'R':
		return !strings.Contains(c, "L") && strings.ContainsAny(end[len(end)-1:], "RAE") && !(strings.Contains(c, "E") && strings.Contains(c, "A"))
	case c[0] == 'L':
		return !strings.ContainsAny(c, "RA") && strings.ContainsAny(end[len(end)-1:], "LE")
	}
	return false
}

// The parameters of Punycode (RFC 3492 § 5).
const (
	punyBase, punyMin, punyMax, punySkew, punyDamp = 36, 1, 26, 38, 700
	punyBias, punyFirst                            = 72, 0x80
)

// fromPunycode decodes what follows xn--.
func fromPunycode(s string) (string, bool) {
	out := []rune{}
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		out, s = []rune(s[:i]), s[i+1:]
	}
	n, i, bias := rune(punyFirst), 0, punyBias
	for at := 0; at < len(s); {
		before, weight := i, 1
		for k := punyBase; ; k += punyBase {
			if at == len(s) {
				return "", false
			}
			digit := strings.IndexByte(punyDigits, s[at])
			at++
			if digit < 0 || i > math.MaxInt32/2-digit*weight {
				return "", false
			}
			i += digit * weight
			t := min(max(k-bias, punyMin), punyMax)
			if digit < t {
				break
			}
			if weight > math.MaxInt32/64/punyBase {
				return "", false
			}
			weight *= punyBase - t
		}
		count := len(out) + 1
		bias = punyAdapt(i-before, count, before == 0)
		if n += rune(i / count); n > unicode.MaxRune || n < punyFirst {
			return "", false
		}
		i %= count
		out = slices.Insert(out, i, n)
		i++
	}
	return string(out), utf8.ValidString(string(out))
}

// toPunycode is the way back.
func toPunycode(s string) string {
	var out []byte
	runes := []rune(s)
	for _, r := range runes {
		if r < punyFirst {
			out = append(out, byte(r))
		}
	}
	done := len(out)
	plain := done
	if plain > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(punyFirst), 0, punyBias
	for done < len(runes) {
		next := rune(unicode.MaxRune)
		for _, r := range runes {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := punyBase; ; k += punyBase {
				t := min(max(k-bias, punyMin), punyMax)
				if q < t {
					break
				}
				out = append(out, punyDigits[t+(q-t)%(punyBase-t)])
				q = (q - t) / (punyBase - t)
			}
			out = append(out, punyDigits[q])
			bias = punyAdapt(delta, done+1, done == plain)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return string(out)
}

const punyDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

func punyAdapt(delta, count int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / count
	k := 0
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}

// ---- Defaults -----------------------------------------------------------

// applyDefaults returns doc with the defaults of its absent members, also in
// objects and arrays within it and within the defaults themselves, though not
// in one within itself. All other bytes stay. No doc at all counts as {}; one
// that is not JSON comes back as it is.
func (v *Schema) applyDefaults(doc []byte) []byte {
	if len(bytes.TrimSpace(doc)) == 0 {
		doc = []byte("{}")
	}
	if !v.defaults {
		return doc
	}
	room := maxNestedDefaults
	d := defaulter{s: scanner{data: doc}, room: &room}
	d.value(describing([]*schemaNode{v.root}))
	if d.s.end(); d.s.err != nil || d.out == nil {
		return doc
	}
	return append(d.out, doc[d.copied:]...)
}

type defaulter struct {
	s      scanner
	out    []byte      // nil as long as nothing is inserted
	copied int         // how much of the text is in out
	within []*property // whose defaults the text is in
	room   *int        // how many bytes of defaults may be in defaults
}

// maxNestedDefaults bounds the defaults within defaults, in bytes: hostile
// ones could double at each level.
const maxNestedDefaults = 1 << 20

// describing adds to schemas of a value those that they refer to.
func describing(nodes []*schemaNode) []*schemaNode {
	for i := 0; i < len(nodes) && i < 100; i++ {
		for _, ref := range nodes[i].always {
			if ref.node != nil && !slices.Contains(nodes, ref.node) {
				nodes = append(nodes, ref.node)
			}
		}
	}
	return nodes
}

// value passes one value that the schemas describe.
func (d *defaulter) value(nodes []*schemaNode) {
	switch c := d.s.peek(); {
	case c == '{' && len(nodes) > 0:
		d.object(nodes)
	case c == '[' && len(nodes) > 0:
		d.s.open('[')
		for i := 0; d.s.more(']', i); i++ {
			var items []*schemaNode
			for _, n := range nodes {
				switch {
				case n.array == nil:
				case i < len(n.array.prefix):
					items = append(items, n.array.prefix[i])
				case n.array.items != nil:
					items = append(items, n.array.items)
				}
			}
			d.value(describing(items))
		}
	default:
		d.s.skip()
	}
}

func (d *defaulter) object(nodes []*schemaNode) {
	names := map[string]bool{}
	d.s.open('{')
	end := d.s.pos // where a member can be added
	for i := 0; d.s.more('}', i); i++ {
		name := string(d.s.key())
		names[name] = true
		d.value(describingMember(nodes, name))
		end = d.s.pos
	}
	if d.s.err != nil {
		return
	}
	for _, n := range nodes {
		if n.object == nil {
			continue
		}
		for i := range n.object.properties {
			p := &n.object.properties[i]
			fallback := p.fallback()
			if fallback == nil || names[p.name] || slices.Contains(d.within, p) {
				continue
			}
			fallback = d.filled(fallback, p, nodes)
			if names[p.name] = true; d.copied < end {
				d.out = append(d.out, d.s.data[d.copied:end]...)
				d.copied = end
			}
			if len(names) > 1 {
				d.out = append(d.out, ',')
			}
			d.out = append(append(appendString(d.out, p.name), ':'), fallback...)
		}
	}
}

// describingMember returns the schemas of a member of a value that the schemas
// describe.
func describingMember(nodes []*schemaNode, name string) (members []*schemaNode) {
	for _, n := range nodes {
		if n.object == nil {
			continue
		}
		known := len(members)
		if slot, ok := n.object.index[name]; ok && n.object.properties[slot].node != nil {
			members = append(members, n.object.properties[slot].node)
		}
		for _, p := range n.object.patterns {
			if p.pattern.MatchString(name) {
				members = append(members, p.node)
			}
		}
		if known == len(members) && n.object.additional != nil {
			members = append(members, n.object.additional)
		}
	}
	return describing(members)
}

// filled returns the default of p with the defaults within it.
func (d *defaulter) filled(fallback []byte, p *property, nodes []*schemaNode) []byte {
	if c := fallback[0]; c != '{' && c != '[' || *d.room < 0 {
		return fallback
	}
	inner := defaulter{s: scanner{data: fallback}, within: append(slices.Clip(d.within), p), room: d.room}
	inner.value(describingMember(nodes, p.name))
	if *d.room -= len(inner.out); inner.s.err != nil || inner.out == nil || *d.room < 0 {
		return fallback
	}
	return append(inner.out, fallback[inner.copied:]...)
}

// fallback returns the default of a property, nil if it has none.
func (p *property) fallback() []byte {
	if p.node == nil {
		return nil
	}
	for _, n := range describing([]*schemaNode{p.node}) {
		if n.fallback != nil {
			return n.fallback
		}
	}
	return nil
}
