/*
 * script.c - the Lua texts and their SHA-1s.
 *
 * Every lock sends them by name (EVALSHA), so that their length only matters
 * to a master that has lost its scripts.  test-script checks the SHA-1s.
 */
#include "redlock/script.h"

#include "redlock/wire.h"

/* "Deleting the key only if it holds our value" is what keeps a late release
 * from ending somebody else's lock.  The mark of those who wait (wait.h) goes with
 * it, for they have to be told then; in the same DEL, since another call would cost
 * all releases half a microsecond.  Nothing of this is a reason not to release, in
 * particular no right that is missing. */
#define TEXT_RELEASE                                                          \
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end "                \
    "local mark='" WIRE_MARK "'..KEYS[1] "                                    \
    "local n=redis.pcall('del',KEYS[1],mark) "                                \
    "if n==2 then "                                                           \
    "local heard=redis.pcall('pubsub','numsub',mark) "                        \
    "redis.pcall('publish',mark,'free '..string.format('%d',heard[2] or 0)) " \
    "elseif n~=1 then redis.call('del',KEYS[1]) end "                         \
    "return 1"

/* Only ever to a later end.  If an extension could shorten, one that failed -
 * asked for less than what was left, and done on masters whose answers were
 * lost - would leave us believing in the old deadline; and one that lay in
 * the socket of a connection given up could undo a newer and longer one. */
#define TEXT_EXTEND                                            \
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end " \
    "if redis.call('pttl',KEYS[1])<tonumber(ARGV[2]) then "    \
    "redis.call('pexpire',KEYS[1],ARGV[2]) end "               \
    "return 1"

/*
 * Fencing counters are fields of the marker, so that they are lost with it or
 * not at all: who has the epoch has the counters.  They count from a floor that was
 * written with the epoch; the floor and a count make a number.  What a client counts by
 * HINCRBY is kept by being no more than the high-water mark, and here that goes up, in
 * steps, so that clients who know the floor know the mark, too.  A new mark alone needs
 * the clock: what is far ahead of it (12 days: 2^40 us) was not counted to, and
 * would be handed on to all masters.  Numbers are doubles here, exact up to 2^53, but
 * neither Lua nor every Redis writes them so: "1.8e+15".
 *
 * Who asks for a number gets that, or the next if it was counted to before.
 */
#define TEXT_RAISE                                                                        \
    "local m=redis.call('hmget',KEYS[2],'epoch','floor','high',ARGV[3]) "                 \
    "if m[1]~=ARGV[4] or not (m[2] and m[3]) then return -1 end "                         \
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end "                            \
    "local n=math.max((m[4] or 0)+1,ARGV[2]-m[2]) "                                       \
    "local s,f=string.format('%.0f',n),m[2]+n "                                           \
    "if f>tonumber(m[3]) then "                                                           \
    "local t=redis.call('time') "                                                         \
    "if f>t[1]*1000000+t[2]+1099511627776 then "                                          \
    "return redis.error_reply('ERR the fencing counter is days ahead of the clock') end " \
    "redis.call('hset',KEYS[2],ARGV[3],s,"                                                \
    "'high',string.format('%.0f',m[2]+math.ceil(n/16384)*16384)) "                        \
    "else redis.call('hset',KEYS[2],ARGV[3],s) end "                                      \
    "return f"

/*
 * One look at the marker, which at the same time keeps it up to date: one
 * script, so that nobody sees it half done.  In this order: an epoch or a nonce
 * that a server has not kept for certain, since it was started again and does
 * not store all it is told, is void; the nonce that the watcher has seen long
 * enough becomes an epoch; where there is neither, a new nonce begins.  With a
 * new epoch all counters begin anew, from a floor that none was above.  (It is
 * written before the others are deleted, so that what may not be written, or not
 * now, deletes nothing: a master without a marker is taken for a new one.)
 *
 * "about" is for people who find the key, and longer than 64 bytes, so that Redis makes it
 * a table at once.  As the list that it is with up to 512 short fields (hash-max-listpack-
 * entries, -value in redis.conf) a count goes through all of them: with 256 counters
 * 6.5 us in place of 0.7.
 */
#define TEXT_LOOK                                                                                \
    "local k,keeps,of=KEYS[1],ARGV[2]~='0',ARGV[6] "                                             \
    "local "                                                                                     \
    "m=redis.call('hmget',k,'id','epoch','nonce','max','fresh','since','of','floor','high') "    \
    "if of~='' and m[7] and m[7]~=of then return 'other '..m[7] end "                            \
    "local t=redis.call('time') "                                                                \
    "local now=t[1]*1000+math.floor(t[2]/1000) "                                                 \
    "local high,floor=tonumber(m[9]) or 0,m[8] "                                                 \
    "local epoch,nonce,fresh,since=m[2],m[3],m[5],m[6] or string.format('%.0f',now) "            \
    "if m[1] and m[1]~=ARGV[1] and not keeps then epoch,nonce=false,false end "                  \
    "if not (floor and m[9]) then epoch=false end "                                              \
    "if not epoch and nonce and nonce==ARGV[5] then "                                            \
    "epoch,floor=ARGV[4],string.format('%.0f',math.max(high,tonumber(ARGV[7]))) "                \
    "high=string.format('%.0f',floor+16384) "                                                    \
    "if of=='' then of=m[7] or of end "                                                          \
    "m[7]=false "                                                                                \
    "redis.call('hset',k,'floor',floor,'high',high) "                                            \
    "redis.call('del',k) "                                                                       \
    "redis.call('hset',k,'floor',floor,'high',high,'about',"                                     \
    "'What Redlock knows of this master: who deletes it makes it warm up before it votes') end " \
    "if epoch then nonce=false "                                                                 \
    "elseif not nonce then "                                                                     \
    "nonce,since=ARGV[4],string.format('%.0f',now) "                                             \
    "fresh=m[1] and '0' or '1' end "                                                             \
    "if not epoch and ARGV[2]~='2' then fresh='0' end "                                          \
    "local max=math.max(tonumber(m[4]) or 0,tonumber(ARGV[3])) "                                 \
    "max=string.format('%.0f',math.min(max,86400000)) "                                          \
    "if m[1]~=ARGV[1] or epoch~=m[2] or nonce~=m[3] or max~=m[4] "                               \
    "or (nonce and fresh~=m[5]) or (of~='' and not m[7]) then "                                  \
    "if epoch then "                                                                             \
    "redis.call('hdel',k,'nonce','fresh','since') "                                              \
    "redis.call('hset',k,'id',ARGV[1],'max',max,'epoch',epoch) "                                 \
    "else "                                                                                      \
    "redis.call('hdel',k,'epoch') "                                                              \
    "redis.call('hset',k,'id',ARGV[1],'max',max,'nonce',nonce,'fresh',fresh,'since',since) end " \
    "if of~='' then redis.call('hset',k,'of',of) end end "                                       \
    "local s=string.format(' %.0f %.0f',high,t[1]*1000000+t[2]) "                                \
    "if epoch then return 'ready '..epoch..' '..max..' '..floor..s end "                         \
    "return 'warming '..nonce..' '..max..' '..fresh..' "                                         \
    "'..string.format('%.0f',math.max(0,now-since))..s"

/* In ms, 13 digits: few enough for every Redis to write them as they are. */
#define TEXT_NOW                  \
    "local t=redis.call('time') " \
    "local now=t[1]*1000+math.floor(t[2]/1000) "

/* Until when readers are held off: that is what the mark tells, if it is not 1. */
#define TEXT_OFF                       \
    "local m=redis.pcall('get',mark) " \
    "local off=type(m)=='string' and tonumber(m) or 0 "

#define TEXT_TELL                                                                \
    "if left>0 and (new or ARGV[3]=='taken') then "                              \
    "redis.pcall('publish',KEYS[2],ARGV[3]..' '..string.format('%d',left)) end " \
    "return left"

/* What is left of the key.  Who finds it there and without a mark marks it, and tells the
 * others who wait, as does, mark or no mark, who has it; where it is not there, the next one
 * will.  Where there are readers, the mark holds others off, for a while from now.  A reader
 * can come in to others, and marks nothing then.  (No right is needed for this that is not
 * needed by who shares.) */
#define TEXT_WAIT                                                                      \
    "local k,mark=KEYS[1],KEYS[2] "                                                    \
    "local left=redis.call('pttl',k) "                                                 \
    "local read=left>=0 and redis.pcall('type',k)['ok']=='zset' "                      \
    "local value,more='1',false "                                                      \
    "if read or ARGV[2]=='' then " TEXT_NOW TEXT_OFF                                   \
    "if ARGV[2]=='' and (read or left==-2) then return off>now and off-now or -2 end " \
    "if read then value=now+ARGV[2] more=value>off end end "                           \
    "if left==-2 or read and ARGV[3]=='taken' then return left end "                   \
    "local new=redis.call('set',mark,value,'NX','PX',ARGV[1]) "                        \
    "if not new and more then redis.call('set',mark,value,'PX',ARGV[1]) end " TEXT_TELL

/* Nothing else runs meanwhile, so that no two of these can wait for each other. */
#define TEXT_ACQUIRE_MANY                                                       \
    "for i=1,#KEYS do if redis.call('pttl',KEYS[i])~=-2 then return i end end " \
    "for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[1],'PX',ARGV[2]) end "      \
    "return redis.status_reply('OK')"

#define TEXT_EXTEND_MANY                                                            \
    "for i=1,#KEYS do if redis.call('get',KEYS[i])~=ARGV[1] then return 0 end end " \
    "for i=1,#KEYS do if redis.call('pttl',KEYS[i])<tonumber(ARGV[2]) then "        \
    "redis.call('pexpire',KEYS[i],ARGV[2]) end end "                                \
    "return 1"

/* What goes wrong with one name is no reason not to release the others; it is done again
 * in the end, to be told. */
#define TEXT_RELEASE_MANY                                                     \
    "local n,bad=0 "                                                          \
    "for i=1,#KEYS do local k=KEYS[i] "                                       \
    "local v=redis.pcall('get',k) "                                           \
    "if v==ARGV[1] then "                                                     \
    "local mark='" WIRE_MARK "'..k "                                          \
    "local d=redis.pcall('del',k,mark) "                                      \
    "if d==2 then "                                                           \
    "local heard=redis.pcall('pubsub','numsub',mark) "                        \
    "redis.pcall('publish',mark,'free '..string.format('%d',heard[2] or 0)) " \
    "elseif d~=1 then d=redis.pcall('del',k) end "                            \
    "if type(d)=='number' then n=n+1 else bad={'del',k} end "                 \
    "elseif type(v)=='table' then bad={'get',k} end end "                     \
    "if bad then redis.call(bad[1],bad[2]) end "                              \
    "return n==#KEYS and 1 or 0"

/* One slot is asked for, the same on all masters: if each took one that is free there, a
 * majority would agree on none.  Which others are free is told to those alone who need it. */
#define TEXT_ACQUIRE_PERMIT                                                       \
    "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then "                \
    "return redis.status_reply('OK') end "                                        \
    "local k=string.sub(KEYS[1],1,-#ARGV[3]-1) "                                  \
    "for i=1,ARGV[4]-1 do local s=(ARGV[3]+i)%ARGV[4] "                           \
    "if redis.call('pttl',k..string.format('%d',s))==-2 then return s+1 end end " \
    "return 0"

#define TEXT_RELEASE_PERMIT                                                   \
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end "                \
    "local mark='" WIRE_MARK "'..string.match(KEYS[1],'(.*):') "              \
    "local n=redis.pcall('del',KEYS[1],mark) "                                \
    "if n==2 then "                                                           \
    "local heard=redis.pcall('pubsub','numsub',mark) "                        \
    "redis.pcall('publish',mark,'free '..string.format('%d',heard[2] or 0)) " \
    "elseif n~=1 then redis.call('del',KEYS[1]) end "                         \
    "return 1"

/* Marked even where one is free, for others may have none, and who waits needs a majority. */
#define TEXT_WAIT_PERMIT                                              \
    "local left=-1 "                                                  \
    "for i=0,ARGV[2]-1 do "                                           \
    "local p=redis.call('pttl',KEYS[1]..':'..string.format('%d',i)) " \
    "if p==-2 then redis.pcall('set',KEYS[2],'1','NX','PX',ARGV[1]) " \
    "return -2 end "                                                  \
    "if p>=0 and (left<0 or p<left) then left=p end end "             \
    "local new=redis.call('set',KEYS[2],'1','NX','PX',ARGV[1]) " TEXT_TELL

_Static_assert(WIRE_QUEUE_MAX == 1024 && WIRE_MARK_MS == 60000, "as written in the text below");

/* The queue without those who were not heard of for longer than they said. */
#define TEXT_QUEUE                                                               \
    "local q,mark='" WIRE_QUEUE "'..KEYS[1],'" WIRE_MARK "'..KEYS[1] " TEXT_NOW  \
    "local dead=redis.pcall('zrangebyscore',q,string.format('%.0f',-now),'(0') " \
    "for i=1,#dead do redis.pcall('zrem',q,dead[i],string.sub(dead[i],2)) end "

#define TEXT_FIRST "redis.pcall('zrangebyscore',q,'(0','inf','limit',0,1)[1] "

/*
 * Whoever is in the queue keeps his number until he has a ticket, and then has that, again
 * and again: so masters that missed or dropped him agree with the others in time.  A join is
 * granted as number 1 only, so that OK tells the number as well.  Who has to wait leaves a
 * mark for those who release without a look at the queue; and if it is readers for whom he
 * waits, the mark holds others off until two more heartbeats are due.
 *
 * Who is put behind somebody where the key is free tells whose turn it is: others do not know
 * that he was before them, by a number that was not his ticket.  But who joins, behind all, or
 * is where he was tells nothing: of a thousand who wait, each would tell all others.
 */
#define TEXT_ACQUIRE_FAIR                                                        \
    TEXT_QUEUE                                                                   \
    "local w,ticket,patience=ARGV[3],tonumber(ARGV[4]),tonumber(ARGV[5]) "       \
    "local joins,mine=ticket==0,redis.call('zscore',q,w) "                       \
    "if not mine and redis.call('zcard',q)>=2048 then return 0 end "             \
    "if joins then "                                                             \
    "local last=redis.call('zrevrange',q,0,0,'withscores')[2] "                  \
    "ticket=tonumber(mine or (last or 0)+1) end "                                \
    "redis.call('zadd',q,string.format('%.0f',ticket),w,"                        \
    "string.format('%.0f',-now-patience),'-'..w) "                               \
    "if redis.call('pttl',q)<patience then redis.call('pexpire',q,ARGV[5]) end " \
    "local first=" TEXT_FIRST "if (ticket==1 or not joins) and w==first "        \
    "and redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then "              \
    "return redis.status_reply('OK') end "                                       \
    "local kind=redis.pcall('type',KEYS[1])['ok'] "                              \
    "if kind=='zset' then " TEXT_OFF "local till=now+math.ceil(patience/2) "     \
    "if till>off then redis.pcall('set',mark,till,'PX',60000) end "              \
    "else redis.pcall('set',mark,'1','NX','PX',60000) end "                      \
    "local moved=not joins and ticket~=tonumber(mine) or #dead>0 "               \
    "if first and moved and kind=='none' then "                                  \
    "redis.pcall('publish',mark,'next '..first) end "                            \
    "return ticket"

/* Who waits himself, and gives back what a minority granted, is told nothing by that.  Who is
 * not in line any more where nobody has it tells as well: he may have been the first. */
#define TEXT_RELEASE_FAIR                                                       \
    "local v=redis.call('get',KEYS[1]) "                                        \
    "if v and v~=ARGV[1] then return 0 end "                                    \
    "if v then redis.call('del',KEYS[1]) end " TEXT_QUEUE "local w=" TEXT_FIRST \
    "if w and w~=ARGV[2] then redis.pcall('publish',mark,'next '..w) "          \
    "elseif not w and redis.pcall('del',mark)==1 then "                         \
    "local heard=redis.pcall('pubsub','numsub',mark) "                          \
    "redis.pcall('publish',mark,'free '..string.format('%d',heard[2] or 0)) "   \
    "end "                                                                      \
    "return v and 1 or 0"

/*
 * Readers are the members of a sorted set in the place of the token, each with its end as
 * the score; so SET NX says no as long as there are any.  The key ends with the last of
 * them.  A member whose time is up is none, though it stays there until somebody else
 * comes or goes.  (It lasts a millisecond more, for what is cut off of now.)  A set
 * without an end is none of ours.  PEXPIREAT comes first, too: without a right to it nothing
 * is left behind that has no end.
 */
#define TEXT_ACQUIRE_SHARED                                                   \
    "local k,mark=KEYS[1],'" WIRE_MARK "'..KEYS[1] "                          \
    "local left=redis.call('pttl',k) "                                        \
    "if left==-1 or left>=0 and redis.call('type',k)['ok']~='zset' then "     \
    "return false end " TEXT_NOW TEXT_OFF "if off>now then return false end " \
    "redis.call('zremrangebyscore',k,'-inf',now) "                            \
    "local last=tonumber(redis.call('zrange',k,-1,-1,'withscores')[2]) or 0 " \
    "local own=now+ARGV[2]+1 "                                                \
    "redis.call('pexpireat',k,math.max(own,last)) "                           \
    "redis.call('zadd',k,own,ARGV[1]) "                                       \
    "redis.call('pexpireat',k,math.max(own,last)) "                           \
    "return redis.status_reply('OK')"

/* PEXPIREAT comes first here, too: with ZADD the master would refuse it for want of memory. */
#define TEXT_EXTEND_SHARED                                                                  \
    "local k=KEYS[1] " TEXT_NOW "local ends=tonumber(redis.call('zscore',k,ARGV[1]) or 0) " \
    "if ends<=now then return 0 end "                                                       \
    "local own=now+ARGV[2]+1 "                                                              \
    "if ends<own then "                                                                     \
    "local last=tonumber(redis.call('zrange',k,-1,-1,'withscores')[2]) "                    \
    "redis.call('pexpireat',k,math.max(own,last)) "                                         \
    "redis.call('zadd',k,own,ARGV[1]) end "                                                 \
    "return 1"

/* The last one tells those who wait, and takes the mark along, unless it holds readers off:
 * it is who does so that is to come in now. */
#define TEXT_RELEASE_SHARED                                                    \
    "local k,mark=KEYS[1],'" WIRE_MARK "'..KEYS[1] " TEXT_NOW                  \
    "if tonumber(redis.call('zscore',k,ARGV[1]) or 0)<=now then return 0 end " \
    "redis.call('zrem',k,ARGV[1]) "                                            \
    "redis.pcall('zremrangebyscore',k,'-inf',now) "                            \
    "local last=redis.pcall('zrange',k,-1,-1,'withscores')[2] "                \
    "if last then redis.pcall('pexpireat',k,last) return 1 end " TEXT_OFF      \
    "if not m then return 1 end "                                              \
    "if off<=now then redis.pcall('del',mark) end "                            \
    "local heard=redis.pcall('pubsub','numsub',mark) "                         \
    "redis.pcall('publish',mark,'free '..string.format('%d',heard[2] or 0)) "  \
    "return 1"

const struct script script_all[SCRIPT_LEN] = {
    [SCRIPT_RELEASE] =
        {
            .text = TEXT_RELEASE,
            .text_len = sizeof TEXT_RELEASE - 1,
            .sha1 = "e3dcfc24cc82333f82a77311868eac55fe37a039",
        },
    [SCRIPT_EXTEND] =
        {
            .text = TEXT_EXTEND,
            .text_len = sizeof TEXT_EXTEND - 1,
            .sha1 = "fad456264071373a49423a0503fce02a428cad4d",
        },
    [SCRIPT_RAISE] =
        {
            .text = TEXT_RAISE,
            .text_len = sizeof TEXT_RAISE - 1,
            .sha1 = "17f15ecd597c9e1b163c7a56bf85b92c4b4c0968",
        },
    [SCRIPT_LOOK] =
        {
            .text = TEXT_LOOK,
            .text_len = sizeof TEXT_LOOK - 1,
            .sha1 = "e3c554015c9018486593e837293b5f534da70fb5",
        },
    [SCRIPT_WAIT] =
        {
            .text = TEXT_WAIT,
            .text_len = sizeof TEXT_WAIT - 1,
            .sha1 = "d2911eea6a6eafed4836376e477c559c6a221b19",
        },
    [SCRIPT_ACQUIRE_MANY] =
        {
            .text = TEXT_ACQUIRE_MANY,
            .text_len = sizeof TEXT_ACQUIRE_MANY - 1,
            .sha1 = "738ea265741b71342091be400597f64419ef35b6",
        },
    [SCRIPT_EXTEND_MANY] =
        {
            .text = TEXT_EXTEND_MANY,
            .text_len = sizeof TEXT_EXTEND_MANY - 1,
            .sha1 = "e3322986cc411d9f12b2cc1d6eb53927698cb977",
        },
    [SCRIPT_RELEASE_MANY] =
        {
            .text = TEXT_RELEASE_MANY,
            .text_len = sizeof TEXT_RELEASE_MANY - 1,
            .sha1 = "bb280a5c07fb9b0a68ff913822c0681efbe30196",
        },
    [SCRIPT_ACQUIRE_PERMIT] =
        {
            .text = TEXT_ACQUIRE_PERMIT,
            .text_len = sizeof TEXT_ACQUIRE_PERMIT - 1,
            .sha1 = "b8096ae2b35e1a37e65e5b4ae37b7cbd4ea477b8",
        },
    [SCRIPT_RELEASE_PERMIT] =
        {
            .text = TEXT_RELEASE_PERMIT,
            .text_len = sizeof TEXT_RELEASE_PERMIT - 1,
            .sha1 = "2a8a8ffd4029685078aeaffd302f97bb0d203793",
        },
    [SCRIPT_WAIT_PERMIT] =
        {
            .text = TEXT_WAIT_PERMIT,
            .text_len = sizeof TEXT_WAIT_PERMIT - 1,
            .sha1 = "749546c8acb2b2e53a9f7c91e535b94bcf10d47a",
        },
    [SCRIPT_ACQUIRE_FAIR] =
        {
            .text = TEXT_ACQUIRE_FAIR,
            .text_len = sizeof TEXT_ACQUIRE_FAIR - 1,
            .sha1 = "e57b1d314d26098b14cf030c5e7771843c5405f6",
        },
    [SCRIPT_RELEASE_FAIR] =
        {
            .text = TEXT_RELEASE_FAIR,
            .text_len = sizeof TEXT_RELEASE_FAIR - 1,
            .sha1 = "0e67305e2b1bb4f2d5fa50b788d0682382dffdf8",
        },
    [SCRIPT_ACQUIRE_SHARED] =
        {
            .text = TEXT_ACQUIRE_SHARED,
            .text_len = sizeof TEXT_ACQUIRE_SHARED - 1,
            .sha1 = "71da4aa56bb9b6a1937b9a6a16dcc27ad4a99aa5",
        },
    [SCRIPT_EXTEND_SHARED] =
        {
            .text = TEXT_EXTEND_SHARED,
            .text_len = sizeof TEXT_EXTEND_SHARED - 1,
            .sha1 = "2eca4138924f56046a88783ecbdfb8093e7b83a3",
        },
    [SCRIPT_RELEASE_SHARED] =
        {
            .text = TEXT_RELEASE_SHARED,
            .text_len = sizeof TEXT_RELEASE_SHARED - 1,
            .sha1 = "abe1dabc2ceb8c41bf73f60bd8f10133304e6c7a",
        },
};
