package json

import (
	stdjson "encoding/json"
	"errors"
	"io"

	"github.com/buger/jsonparser"
	"github.com/go-faster/jx"
	"github.com/minio/simdjson-go"
	"github.com/tidwall/gjson"
	"github.com/valyala/fastjson"

	"github.com/busdk/bus-agent/internal/bench/corpus"
	"github.com/busdk/bus-agent/jsonline"
)

// Candidates that go through a line member by member.

var errNotJSON = errors.New("not JSON")

func newJSONLine() reader {
	names := new(jsonline.Names)
	var walk func(r *jsonline.Reader, in object, n *needs)
	walk = func(r *jsonline.Reader, in object, n *needs) {
		for m := r.Object(); m.Next(); {
			name := m.Name()
			kind := r.Kind()
			switch {
			case kind == jsonline.String:
				if field := n.word(in, name); field != nil {
					*field = names.String(r.Text())
				} else if in.text(name) {
					n.Text = r.String()
				} else if at := n.located(in, name); at != nil {
					*at = located{r.Text().Raw(), body}
				}
			case kind == jsonline.Object:
				if inside := in.inside(name); inside != nowhere {
					walk(r, inside, n)
				} else if at := n.located(in, name); at != nil {
					*at = located{r.Raw(), asJSON}
				}
			case kind == jsonline.Array:
				if inside := in.inside(name); inside == block {
					for e := r.Array(); e.Next(); {
						walk(r, inside, n)
					}
				} else if at := n.located(in, name); at != nil {
					*at = located{r.Raw(), asJSON}
				}
			}
		}
	}
	var r jsonline.Reader
	return func(_ corpus.Shape, raw []byte, n *needs) error {
		*n = needs{}
		r = jsonline.New(raw)
		walk(&r, line, n)
		if !r.End() {
			return errNotJSON
		}
		return nil
	}
}

func newGJSON(validate bool) func() reader {
	return func() reader {
		var walk func(v gjson.Result, in object, n *needs)
		walk = func(v gjson.Result, in object, n *needs) {
			v.ForEach(func(key, v gjson.Result) bool {
				name := []byte(key.Str)
				switch {
				case v.Type == gjson.String:
					if field := n.word(in, name); field != nil {
						*field = v.Str
					} else if in.text(name) {
						n.Text = v.Str
					} else if at := n.located(in, name); at != nil {
						*at = located{[]byte(v.Raw), asJSON}
					}
				case v.IsObject():
					if inside := in.inside(name); inside != nowhere {
						walk(v, inside, n)
					} else if at := n.located(in, name); at != nil {
						*at = located{[]byte(v.Raw), asJSON}
					}
				case v.IsArray():
					if inside := in.inside(name); inside == block {
						v.ForEach(func(_, v gjson.Result) bool { walk(v, inside, n); return true })
					} else if at := n.located(in, name); at != nil {
						*at = located{[]byte(v.Raw), asJSON}
					}
				}
				return true
			})
		}
		return func(_ corpus.Shape, raw []byte, n *needs) error {
			*n = needs{}
			if validate && !gjson.ValidBytes(raw) {
				return errNotJSON
			}
			v := gjson.ParseBytes(raw)
			if !v.IsObject() {
				return errNotJSON
			}
			walk(v, line, n)
			return nil
		}
	}
}

func newJSONParser() reader {
	short := words{}
	var buffer [1024]byte // for words with escapes
	var walk func(raw []byte, in object, n *needs) error
	walk = func(raw []byte, in object, n *needs) error {
		return jsonparser.ObjectEach(raw, func(name, value []byte, kind jsonparser.ValueType, _ int) error {
			switch kind {
			case jsonparser.String:
				if field := n.word(in, name); field != nil {
					b, err := jsonparser.Unescape(value, buffer[:])
					*field = short.of(b)
					return err
				} else if in.text(name) {
					s, err := jsonparser.ParseString(value)
					n.Text = s
					return err
				} else if at := n.located(in, name); at != nil {
					*at = located{value, body}
				}
			case jsonparser.Object:
				if inside := in.inside(name); inside != nowhere {
					return walk(value, inside, n)
				} else if at := n.located(in, name); at != nil {
					*at = located{value, asJSON}
				}
			case jsonparser.Array:
				if inside := in.inside(name); inside == block {
					var inner error
					_, err := jsonparser.ArrayEach(value, func(value []byte, _ jsonparser.ValueType, _ int, _ error) {
						inner = errors.Join(inner, walk(value, inside, n))
					})
					return errors.Join(inner, err)
				} else if at := n.located(in, name); at != nil {
					*at = located{value, asJSON}
				}
			}
			return nil
		})
	}
	return func(_ corpus.Shape, raw []byte, n *needs) error {
		*n = needs{}
		return walk(raw, line, n)
	}
}

func newFastJSON() reader {
	var p fastjson.Parser
	short := words{}
	var walk func(v *fastjson.Value, in object, n *needs)
	walk = func(v *fastjson.Value, in object, n *needs) {
		v.GetObject().Visit(func(name []byte, v *fastjson.Value) {
			switch v.Type() {
			case fastjson.TypeString:
				if field := n.word(in, name); field != nil {
					*field = short.of(v.GetStringBytes())
				} else if in.text(name) {
					n.Text = string(v.GetStringBytes())
				} else if at := n.located(in, name); at != nil {
					*at = located{v.GetStringBytes(), text}
				}
			case fastjson.TypeObject:
				if inside := in.inside(name); inside != nowhere {
					walk(v, inside, n)
				} else if at := n.located(in, name); at != nil {
					*at = located{v.MarshalTo(nil), asJSON}
				}
			case fastjson.TypeArray:
				if inside := in.inside(name); inside == block {
					for _, v := range v.GetArray() {
						walk(v, inside, n)
					}
				} else if at := n.located(in, name); at != nil {
					*at = located{v.MarshalTo(nil), asJSON}
				}
			}
		})
	}
	return func(_ corpus.Shape, raw []byte, n *needs) error {
		*n = needs{}
		v, err := p.ParseBytes(raw)
		if err != nil {
			return err
		}
		if v.Type() != fastjson.TypeObject {
			return errNotJSON
		}
		walk(v, line, n)
		return nil
	}
}

func newJX() reader {
	short := words{}
	var walk func(d *jx.Decoder, in object, n *needs) error
	walk = func(d *jx.Decoder, in object, n *needs) error {
		return d.ObjBytes(func(d *jx.Decoder, name []byte) error {
			switch d.Next() {
			case jx.String:
				if field := n.word(in, name); field != nil {
					b, err := d.StrBytes()
					*field = short.of(b)
					return err
				} else if in.text(name) {
					s, err := d.Str()
					n.Text = s
					return err
				} else if at := n.located(in, name); at != nil {
					b, err := d.Raw()
					*at = located{b, asJSON}
					return err
				}
			case jx.Object:
				if inside := in.inside(name); inside != nowhere {
					return walk(d, inside, n)
				} else if at := n.located(in, name); at != nil {
					b, err := d.Raw()
					*at = located{b, asJSON}
					return err
				}
			case jx.Array:
				if inside := in.inside(name); inside == block {
					return d.Arr(func(d *jx.Decoder) error { return walk(d, inside, n) })
				} else if at := n.located(in, name); at != nil {
					b, err := d.Raw()
					*at = located{b, asJSON}
					return err
				}
			}
			return d.Skip()
		})
	}
	d := jx.DecodeBytes(nil)
	return func(_ corpus.Shape, raw []byte, n *needs) error {
		*n = needs{}
		d.ResetBytes(raw)
		if err := walk(d, line, n); err != nil {
			return err
		}
		if err := d.Skip(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return errNotJSON // something follows
		}
		return nil
	}
}

func newSimdJSON() reader {
	var parsed *simdjson.ParsedJson
	short := words{}
	var walk func(i *simdjson.Iter, in object, n *needs) error
	walk = func(i *simdjson.Iter, in object, n *needs) error {
		o, err := i.Object(nil)
		if err != nil {
			return err
		}
		var inner error
		err = o.ForEach(func(name []byte, i simdjson.Iter) {
			switch i.Type() {
			case simdjson.TypeString:
				b, err := i.StringBytes()
				if err != nil {
					inner = err
				} else if field := n.word(in, name); field != nil {
					*field = short.of(b)
				} else if in.text(name) {
					n.Text = string(b)
				} else if at := n.located(in, name); at != nil {
					*at = located{b, text}
				}
			case simdjson.TypeObject, simdjson.TypeArray:
				inside := in.inside(name)
				switch {
				case inside == nowhere, i.Type() == simdjson.TypeArray && inside != block:
					if at := n.located(in, name); at != nil {
						// Its own MarshalJSON loses the members of an object found so.
						v, err := i.Interface()
						b, marshalErr := stdjson.Marshal(v)
						*at, inner = located{b, asJSON}, errors.Join(inner, err, marshalErr)
					}
				case i.Type() == simdjson.TypeObject:
					inner = errors.Join(inner, walk(&i, inside, n))
				default:
					a, err := i.Array(nil)
					if err != nil {
						inner = err
						return
					}
					a.ForEach(func(i simdjson.Iter) { inner = errors.Join(inner, walk(&i, inside, n)) })
				}
			}
		}, nil)
		return errors.Join(err, inner)
	}
	return func(_ corpus.Shape, raw []byte, n *needs) error {
		*n = needs{}
		var err error
		if parsed, err = simdjson.Parse(raw, parsed, simdjson.WithCopyStrings(false)); err != nil {
			parsed = nil
			return err
		}
		return parsed.ForEach(func(i simdjson.Iter) error { return walk(&i, line, n) })
	}
}
