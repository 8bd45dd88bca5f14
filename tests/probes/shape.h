// What host and plugin both include: a class with a key function nowhere, and an inline function that a macro gives two bodies.
#pragma once

#ifndef WHO
#define WHO 0
#endif

struct SHAPE_VISIBILITY Shape {
  virtual ~Shape() = default;
  virtual int corners() const = 0;
};

struct SHAPE_VISIBILITY Square : Shape {
  int corners() const override { return 4; }
};

inline int who() { return WHO; }

inline int &counter() {
  static int count = 10 * WHO;
  return count;
}
