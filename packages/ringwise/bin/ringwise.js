#!/usr/bin/env node
import '@ringwise/launch/cli';
