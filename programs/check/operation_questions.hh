// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation_questions.hh -- the questions about operations, of the list in questions.cc

#pragma once

#include "questions.hh"

Results messages(Session &session);
Results inline_data(Session &session);
Results atomics(Session &session);
Results torn(Session &session);
Results unfenced(Session &session);
Results flush(Session &session);
